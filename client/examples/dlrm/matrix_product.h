// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices for several threads: one at a time, whoever asks. The
// serial build of OpenBLAS shares its work buffers without a lock, and gives
// threads that call it at once wrong numbers, rarely and silently.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_MATRIX_PRODUCT_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_MATRIX_PRODUCT_H_

#include <ATen/core/Tensor.h>

namespace cubicml::dlrm {

// input * weight^T + bias: [n, k], [m, k], [m] -> [n, m]. Differentiable, and
// so is the next; their gradients take the same turns. Thread-safe.
at::Tensor Linear(const at::Tensor& input, const at::Tensor& weight,
                  const at::Tensor& bias);

// The product of each pair: [s, n, k], [s, k, m] -> [s, n, m].
at::Tensor BatchedProduct(const at::Tensor& a, const at::Tensor& b);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_MATRIX_PRODUCT_H_
