// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/interaction.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <vector>

#include "client/examples/dlrm/matrix_product.h"

namespace cubicml::dlrm {
namespace {

// Samples below which another thread is not worth waking.
constexpr int64_t kGrain = 64;

// Adds up in eight lanes, so that the compiler may use vector instructions
// without being allowed to reorder floating-point sums in general.
float Dot(const float* a, const float* b, int64_t dim) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes] = {};
  int64_t d = 0;
  for (; d + kLanes <= dim; d += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += a[d + lane] * b[d + lane];
    }
  }
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  for (; d < dim; ++d) sum += a[d] * b[d];
  return sum;
}

void AddScaled(float scale, const float* from, float* to, int64_t dim) {
  for (int64_t d = 0; d < dim; ++d) to[d] += scale * from[d];
}

// All pairs of a sample while its vectors are in the first-level cache, and
// neither the unneeded half of the product matrix nor copies of it.
class FusedProducts : public torch::autograd::Function<FusedProducts> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx,
                            const at::Tensor& input) {
    const at::Tensor vectors = input.contiguous();
    ctx->save_for_backward({vectors});
    const int64_t n = vectors.size(1);
    const int64_t dim = vectors.size(2);
    at::Tensor products =
        at::empty({vectors.size(0), n * (n - 1) / 2}, vectors.options());
    const float* in = vectors.data_ptr<float>();
    float* out = products.data_ptr<float>();
    at::parallel_for(0, vectors.size(0), kGrain,
                     [=](int64_t begin, int64_t end) {
                       float* product = out + begin * (n * (n - 1) / 2);
                       for (int64_t sample = begin; sample < end; ++sample) {
                         const float* v = in + sample * n * dim;
                         for (int64_t i = 1; i < n; ++i) {
                           for (int64_t j = 0; j < i; ++j) {
                             *product++ = Dot(v + i * dim, v + j * dim, dim);
                           }
                         }
                       }
                     });
    return products;
  }

  static torch::autograd::tensor_list backward(
      torch::autograd::AutogradContext* ctx,
      torch::autograd::tensor_list grad_outputs) {
    const at::Tensor vectors = ctx->get_saved_variables()[0];
    const at::Tensor grad_products = grad_outputs[0].contiguous();
    const int64_t n = vectors.size(1);
    const int64_t dim = vectors.size(2);
    at::Tensor grad_vectors = at::zeros_like(vectors);
    const float* in = vectors.data_ptr<float>();
    const float* grad_in = grad_products.data_ptr<float>();
    float* out = grad_vectors.data_ptr<float>();
    at::parallel_for(0, vectors.size(0), kGrain,
                     [=](int64_t begin, int64_t end) {
                       const float* grad = grad_in + begin * (n * (n - 1) / 2);
                       for (int64_t sample = begin; sample < end; ++sample) {
                         const float* v = in + sample * n * dim;
                         float* g = out + sample * n * dim;
                         for (int64_t i = 1; i < n; ++i) {
                           for (int64_t j = 0; j < i; ++j) {
                             AddScaled(*grad, v + j * dim, g + i * dim, dim);
                             AddScaled(*grad, v + i * dim, g + j * dim, dim);
                             ++grad;
                           }
                         }
                       }
                     });
    return {grad_vectors};
  }
};

// One batched product of every sample's vectors with their transpose, of which
// the lower triangle is picked.
at::Tensor BmmProducts(const at::Tensor& vectors) {
  const int64_t n = vectors.size(1);
  std::vector<int64_t> lower_triangle;
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) lower_triangle.push_back(i * n + j);
  }
  return BatchedProduct(vectors, vectors.transpose(1, 2))
      .flatten(1)
      .index_select(1, at::tensor(lower_triangle, at::kLong));
}

// One multiplication and one sum over the whole batch for each pair.
at::Tensor LoopProducts(const at::Tensor& vectors) {
  const std::vector<at::Tensor> each = vectors.unbind(1);
  std::vector<at::Tensor> products;
  for (size_t i = 1; i < each.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      products.push_back(each[i].mul(each[j]).sum(1));
    }
  }
  return at::stack(products, 1);
}

}  // namespace

at::Tensor PairwiseProducts(const at::Tensor& vectors, Interaction method) {
  switch (method) {
    case Interaction::kBmm:
      return BmmProducts(vectors);
    case Interaction::kLoop:
      return LoopProducts(vectors);
    case Interaction::kFused:
      break;
  }
  return FusedProducts::apply(vectors);
}

}  // namespace cubicml::dlrm
