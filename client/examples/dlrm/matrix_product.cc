// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/matrix_product.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>

namespace cubicml::dlrm {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

std::mutex& ProductMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

class LockedLinear : public torch::autograd::Function<LockedLinear> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias) {
    ctx->save_for_backward({input, weight});
    ctx->saved_data["needs_input"] = input.requires_grad();
    const std::lock_guard<std::mutex> lock(ProductMutex());
    return at::linear(input, weight, bias);
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list gradients) {
    const tensor_list saved = ctx->get_saved_variables();
    const at::Tensor& gradient = gradients[0];
    const at::Tensor of_bias = gradient.sum(0);
    at::Tensor of_input;
    const std::lock_guard<std::mutex> lock(ProductMutex());
    if (ctx->saved_data["needs_input"].toBool()) {
      of_input = at::mm(gradient, saved[1]);
    }
    return {of_input, at::mm(gradient.t(), saved[0]), of_bias};
  }
};

class LockedBatchedProduct
    : public torch::autograd::Function<LockedBatchedProduct> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a,
                            const at::Tensor& b) {
    ctx->save_for_backward({a, b});
    const std::lock_guard<std::mutex> lock(ProductMutex());
    return at::bmm(a, b);
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list gradients) {
    const tensor_list saved = ctx->get_saved_variables();
    const std::lock_guard<std::mutex> lock(ProductMutex());
    return {at::bmm(gradients[0], saved[1].transpose(1, 2)),
            at::bmm(saved[0].transpose(1, 2), gradients[0])};
  }
};

}  // namespace

at::Tensor Linear(const at::Tensor& input, const at::Tensor& weight,
                  const at::Tensor& bias) {
  return LockedLinear::apply(input, weight, bias);
}

at::Tensor BatchedProduct(const at::Tensor& a, const at::Tensor& b) {
  return LockedBatchedProduct::apply(a, b);
}

}  // namespace cubicml::dlrm
