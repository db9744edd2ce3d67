// SPDX-License-Identifier: Apache-2.0

#include "predictor/regressor.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "predictor/kernel_regressor.h"
#include "predictor/linear_regressor.h"
#include "predictor/network_regressor.h"

namespace cubicml {

absl::StatusOr<std::unique_ptr<Regressor>> LoadRegressor(
    const internal::Regressor& proto, size_t columns) {
  switch (proto.kind_case()) {
    case internal::Regressor::kLinear:
      return LoadLinearRegressor(proto.linear(), columns);
    case internal::Regressor::kKernel:
      return LoadKernelRegressor(proto.kernel(), columns);
    case internal::Regressor::kNetwork:
      return LoadNetworkRegressor(proto.network(), columns);
    case internal::Regressor::KIND_NOT_SET:
      break;
  }
  return absl::DataLossError("a regressor of a checkpoint is of no known kind");
}

double HeldOutLogDensity(const RegressionProblem& problem,
                         const RegressionFit& fit) {
  double sum = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < fit.held_out.size(); ++i) {
    const double w = problem.weights[i];
    const double stddev = fit.held_out[i].stddev;
    const double variance =
        std::max(stddev * stddev + fit.noise * fit.noise / w, 1e-24);
    const double residual = problem.targets[i] - fit.held_out[i].mean;
    sum -= 0.5 * w * (residual * residual / variance + std::log(variance));
    total += w;
  }
  return total > 0.0 ? sum / total : 0.0;
}

}  // namespace cubicml
