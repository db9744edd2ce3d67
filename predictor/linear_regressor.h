// SPDX-License-Identifier: Apache-2.0
//
// Bayesian ridge regression: the model for the first few rows, and the
// yardstick for all others.

#ifndef CUBICML_PREDICTOR_LINEAR_REGRESSOR_H_
#define CUBICML_PREDICTOR_LINEAR_REGRESSOR_H_

#include <cstddef>
#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "predictor/regressor.h"

namespace cubicml {

// Training is linear in the rows: more than this add time and no quality.
inline constexpr size_t kMaxLinearRows = 4000;

// Fits weights with a Gaussian prior whose strength maximises the evidence.
// Columns with more than two values enter squared too, so that a best value
// inside a range can be learnt. The level of each group is fitted exactly (flat
// prior), so adding a constant to a group's targets changes nothing.
// CANCELLED when `stop` was requested; INTERNAL when a matrix is singular.
absl::StatusOr<RegressionFit> FitLinear(const RegressionProblem& problem,
                                        const std::stop_token& stop);

// DATA_LOSS when the message is not consistent.
absl::StatusOr<std::unique_ptr<Regressor>> LoadLinearRegressor(
    const internal::LinearRegressor& proto, size_t columns);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_LINEAR_REGRESSOR_H_
