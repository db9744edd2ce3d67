// SPDX-License-Identifier: Apache-2.0
//
// The heart of DLRM: the dot product of every pair of a sample's vectors.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_INTERACTION_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_INTERACTION_H_

#include <ATen/core/Tensor.h>

#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

// `vectors` is float [samples, n, dim]; the result is [samples, n(n-1)/2], the
// products of vectors i > j in the order (1,0), (2,0), (2,1), (3,0), ...
// Every method computes the same, forwards and backwards, to rounding.
at::Tensor PairwiseProducts(const at::Tensor& vectors, Interaction method);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_INTERACTION_H_
