// SPDX-License-Identifier: Apache-2.0
//
// Gaussian process regression: the model for the tens of rows in which most of
// a search happens, where networks have too little to learn from and a linear
// model is too stiff.

#ifndef CUBICML_PREDICTOR_KERNEL_FIT_H_
#define CUBICML_PREDICTOR_KERNEL_FIT_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "predictor/regressor.h"

namespace cubicml {

// Fits a Matern 5/2 kernel with a length for each column plus a linear kernel,
// by maximum posterior: with few rows the lengths stay near a prior that grows
// with the number of columns. The levels of the groups are fitted with the
// rest.
// REQUIRES: at most kMaxKernelRows rows.
// CANCELLED when `stop` was requested; INTERNAL when a matrix is singular.
absl::StatusOr<RegressionFit> FitKernel(const RegressionProblem& problem,
                                        const std::stop_token& stop);

// The same for a target that few columns say much about: every column is taken
// for irrelevant until rows say otherwise, and as long as they do not.
absl::StatusOr<RegressionFit> FitSparseKernel(const RegressionProblem& problem,
                                              const std::stop_token& stop);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KERNEL_FIT_H_
