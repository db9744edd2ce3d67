// SPDX-License-Identifier: Apache-2.0
//
// A Gaussian process that has been fitted (predictor/kernel_fit.h), ready to
// predict.

#ifndef CUBICML_PREDICTOR_KERNEL_REGRESSOR_H_
#define CUBICML_PREDICTOR_KERNEL_REGRESSOR_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "predictor/regressor.h"

namespace cubicml {

// Fitting is cubic and scoring quadratic in the rows: callers pass a sample of
// at most this many.
inline constexpr size_t kMaxKernelRows = 256;

struct KernelParts {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<float> inverse_lengths;
  double matern_variance = 0.0;
  double linear_variance = 0.0;
  std::vector<float> inputs;         // rows * columns, divided by the lengths
  std::vector<double> dual_weights;  // rows
  std::vector<float> whitening;      // lower triangle, row by row
  std::vector<float> centres;        // columns
};

std::unique_ptr<Regressor> NewKernelRegressor(KernelParts parts);

// DATA_LOSS when the message is not consistent.
absl::StatusOr<std::unique_ptr<Regressor>> LoadKernelRegressor(
    const internal::KernelRegressor& proto, size_t columns);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KERNEL_REGRESSOR_H_
