// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/parameter_updater.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cubicml::dlrm {
namespace {

// LibTorch's default for Adagrad, so that both loops compute the same.
constexpr float kAdagradEpsilon = 1e-10F;
// Elements below which another thread is not worth waking.
constexpr int64_t kGrain = 32'768;

class TorchUpdater : public ParameterUpdater {
 public:
  TorchUpdater(std::unique_ptr<torch::optim::Optimizer> optimizer,
               bool set_to_none, const std::vector<at::Tensor>& parameters)
      : optimizer_(std::move(optimizer)),
        set_to_none_(set_to_none),
        parameters_(parameters) {}

  // Clears the gradients itself, because what Optimizer::zero_grad() does by
  // default differs between versions of LibTorch.
  void Update() override {
    optimizer_->step();
    for (const at::Tensor& parameter : parameters_) {
      at::Tensor& grad = parameter.mutable_grad();
      if (!grad.defined()) continue;
      if (set_to_none_) {
        grad = at::Tensor();
      } else {
        grad.zero_();
      }
    }
  }

 private:
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
  const bool set_to_none_;
  std::vector<at::Tensor> parameters_;
};

// Reads a gradient, writes the parameter and clears the gradient in one pass
// over memory, where LibTorch makes one for each operation. Of a sparse
// gradient it visits the given rows; SGD does not even need equal ones added
// up first, because it is linear.
class FusedUpdater : public ParameterUpdater {
 public:
  FusedUpdater(const DlrmOptions& options,
               const std::vector<at::Tensor>& parameters)
      : adagrad_(options.optimizer == Optimizer::kAdagrad),
        set_to_none_(options.zero_grad == ZeroGrad::kNone),
        lr_(static_cast<float>(options.lr)),
        parameters_(parameters) {
    if (!adagrad_) return;
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters_) {
      squares_.push_back(at::zeros_like(parameter));
    }
  }

  void Update() override {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& grad = parameters_[i].mutable_grad();
      if (!grad.defined()) continue;
      float* squares = adagrad_ ? squares_[i].data_ptr<float>() : nullptr;
      if (grad.is_sparse()) {
        UpdateRows(parameters_[i], grad, squares);
        if (!set_to_none_) grad.zero_();
      } else {
        UpdateAll(parameters_[i], grad, squares);
      }
      if (set_to_none_) grad = at::Tensor();
    }
  }

 private:
  void UpdateAll(const at::Tensor& parameter, const at::Tensor& grad,
                 float* squares) const {
    const at::Tensor packed = grad.contiguous();
    float* to = parameter.data_ptr<float>();
    float* from = packed.data_ptr<float>();
    at::parallel_for(
        0, parameter.numel(), kGrain, [=, this](int64_t begin, int64_t end) {
          UpdateRange(to + begin, from + begin,
                      squares == nullptr ? nullptr : squares + begin,
                      end - begin);
          if (!set_to_none_) {
            std::fill(from + begin, from + end, 0.0F);
          }
        });
    if (!set_to_none_ && !packed.is_same(grad)) grad.zero_();
  }

  void UpdateRows(const at::Tensor& parameter, const at::Tensor& sparse,
                  float* squares) const {
    const at::Tensor grad = adagrad_ ? sparse.coalesce() : sparse;
    const at::Tensor rows = grad._indices().contiguous();
    const at::Tensor values = grad._values().contiguous();
    const int64_t dim = parameter.size(1);
    const int64_t* row = rows.data_ptr<int64_t>();
    const float* from = values.data_ptr<float>();
    float* to = parameter.data_ptr<float>();
    // One thread: equal rows may stand anywhere.
    for (int64_t i = 0; i < rows.numel(); ++i) {
      const int64_t at = row[i] * dim;
      UpdateRange(to + at, from + i * dim,
                  squares == nullptr ? nullptr : squares + at, dim);
    }
  }

  void UpdateRange(float* to, const float* grad, float* squares,
                   int64_t count) const {
    if (squares == nullptr) {
      for (int64_t i = 0; i < count; ++i) to[i] -= lr_ * grad[i];
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      squares[i] += grad[i] * grad[i];
      to[i] -= lr_ * grad[i] / (std::sqrt(squares[i]) + kAdagradEpsilon);
    }
  }

  const bool adagrad_;
  const bool set_to_none_;
  const float lr_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> squares_;  // empty unless Adagrad
};

}  // namespace

std::unique_ptr<ParameterUpdater> MakeParameterUpdater(
    const DlrmOptions& options, const std::vector<at::Tensor>& parameters) {
  if (options.update_loop == UpdateLoop::kFused) {
    return std::make_unique<FusedUpdater>(options, parameters);
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (options.optimizer == Optimizer::kSgd) {
    optimizer = std::make_unique<torch::optim::SGD>(
        parameters, torch::optim::SGDOptions(options.lr));
  } else {
    optimizer = std::make_unique<torch::optim::Adagrad>(
        parameters, torch::optim::AdagradOptions(options.lr));
  }
  return std::make_unique<TorchUpdater>(
      std::move(optimizer), options.zero_grad == ZeroGrad::kNone, parameters);
}

}  // namespace cubicml::dlrm
