// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/trainer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cubicml::dlrm {
namespace {

// Adds in place where the sum has the same shape; a sum of sparse gradients
// has the rows of both.
void AddGradient(at::Tensor& sum, at::Tensor&& gradient) {
  if (!sum.defined()) {
    sum = std::move(gradient);
  } else if (sum.is_sparse()) {
    sum = sum.add(gradient);
  } else {
    sum.add_(gradient);
  }
}

}  // namespace

Trainer::Trainer(const DlrmOptions& options)
    : options_(options),
      log_(options_.shape, options_.table_layout),
      model_(options_),
      updater_(MakeParameterUpdater(options_, model_.Parameters())),
      workers_(options_.worker_threads),
      loader_(log_, options_) {}

double Trainer::Step() {
  const double loss = options_.worker_threads == 1
                          ? AccumulateGradients()
                          : AccumulateGradientsInParallel();
  updater_->Update();
  return loss;
}

double Trainer::AccumulateGradients() {
  double sum = 0.0;
  for (int64_t i = 0; i < options_.accumulation; ++i) {
    at::Tensor loss = model_.Loss(loader_.Next());
    sum += static_cast<double>(loss.item<float>());
    if (options_.accumulation > 1) {
      loss = loss.div(static_cast<double>(options_.accumulation));
    }
    loss.backward();
  }
  return sum / static_cast<double>(options_.accumulation);
}

double Trainer::AccumulateGradientsInParallel() {
  std::vector<Batch> batches;
  for (int64_t i = 0; i < options_.accumulation; ++i) {
    batches.push_back(loader_.Next());
  }
  const auto workers = static_cast<size_t>(options_.worker_threads);
  const auto scale = 1.0 / static_cast<double>(options_.accumulation);
  std::vector<std::vector<at::Tensor>> gradients(
      workers, std::vector<at::Tensor>(model_.Parameters().size()));
  std::vector<double> losses(workers);
  workers_.Run([&](int64_t worker) {
    const auto w = static_cast<size_t>(worker);
    for (size_t i = w; i < batches.size(); i += workers) {
      const at::Tensor loss = model_.Loss(batches[i]);
      losses[w] += static_cast<double>(loss.item<float>());
      std::vector<at::Tensor> of_batch =
          torch::autograd::grad({loss.mul(scale)}, model_.Parameters());
      const at::NoGradGuard no_grad;
      for (size_t p = 0; p < of_batch.size(); ++p) {
        AddGradient(gradients[w][p], std::move(of_batch[p]));
      }
    }
  });
  // In the order of the workers, so that a run can be repeated to the bit.
  const at::NoGradGuard no_grad;
  double loss = losses[0];
  for (size_t w = 1; w < workers; ++w) {
    loss += losses[w];
    for (size_t p = 0; p < gradients[w].size(); ++p) {
      AddGradient(gradients[0][p], std::move(gradients[w][p]));
    }
  }
  for (size_t p = 0; p < gradients[0].size(); ++p) {
    model_.Parameters()[p].mutable_grad() = std::move(gradients[0][p]);
  }
  return loss * scale;
}

double Trainer::HeldOutLoss() const {
  constexpr int64_t kChunk = 1024;
  const at::NoGradGuard no_grad;
  double sum = 0.0;
  for (int64_t first = 0; first < options_.eval_samples; first += kChunk) {
    const int64_t count = std::min(kChunk, options_.eval_samples - first);
    const Batch batch =
        ReadBatch(log_, options_, ClickStream::kHeldOut, first, count);
    sum += static_cast<double>(model_.Loss(batch).item<float>()) *
           static_cast<double>(count);
  }
  return sum / static_cast<double>(options_.eval_samples);
}

int64_t Trainer::SamplesWaiting() const {
  return loader_.Waiting() * options_.MicroBatchSize();
}

}  // namespace cubicml::dlrm
