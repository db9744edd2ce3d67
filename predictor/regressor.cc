// SPDX-License-Identifier: Apache-2.0

#include "predictor/regressor.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "predictor/kernel_regressor.h"
#include "predictor/linear_regressor.h"
#include "predictor/network_regressor.h"

namespace cubicml {

namespace {

bool AreFinite(std::span<const Belief> beliefs) {
  return std::all_of(beliefs.begin(), beliefs.end(), [](const Belief& belief) {
    return std::isfinite(belief.mean) && std::isfinite(belief.stddev);
  });
}

// Also of what it would predict of its own rows: what is held out comes from
// other regressors.
bool IsFinite(const RegressionProblem& problem, const RegressionFit& fit) {
  std::vector<Belief> beliefs(problem.features->rows);
  fit.regressor->Predict(*problem.features, 0, beliefs);
  return std::isfinite(fit.noise) &&
         std::all_of(fit.levels.begin(), fit.levels.end(),
                     [](double level) { return std::isfinite(level); }) &&
         AreFinite(fit.held_out) && AreFinite(beliefs);
}

// INTERNAL instead of a fit that is not finite.
absl::StatusOr<RegressionFit> FitFinite(const RegressionProblem& problem,
                                        const FitFunction& fit,
                                        const std::stop_token& stop) {
  CUBICML_ASSIGN_OR_RETURN(RegressionFit fitted, fit(problem, stop));
  if (!IsFinite(problem, fitted)) {
    return absl::InternalError("a regressor is not finite");
  }
  return fitted;
}

}  // namespace

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

std::vector<bool> FindKnownLevels(const RegressionProblem& problem) {
  const size_t rows = problem.groups.size();
  constexpr int kSeveral = -1;
  // By group: the only fold that it has rows in.
  std::vector<std::optional<int>> only(
      static_cast<size_t>(problem.group_count));
  for (size_t i = 0; i < rows; ++i) {
    std::optional<int>& fold = only[static_cast<size_t>(problem.groups[i])];
    if (fold.value_or(problem.folds[i]) != problem.folds[i]) {
      fold = kSeveral;
    } else {
      fold = problem.folds[i];
    }
  }
  std::vector<bool> known(rows);
  for (size_t i = 0; i < rows; ++i) {
    known[i] = problem.fold_count == 1 ||
               only[static_cast<size_t>(problem.groups[i])] == kSeveral;
  }
  return known;
}

double HeldOutLogDensity(const RegressionProblem& problem,
                         const RegressionFit& fit) {
  const std::vector<bool> known = FindKnownLevels(problem);
  const bool any_known =
      std::find(known.begin(), known.end(), true) != known.end();
  double sum = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < fit.held_out.size(); ++i) {
    if (any_known && !known[i]) continue;
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

absl::StatusOr<LikeliestFit> FitLikeliest(const RegressionProblem& problem,
                                          const std::vector<FitFunction>& kinds,
                                          const std::stop_token& stop) {
  std::optional<LikeliestFit> best;
  double best_density = 0.0;
  absl::Status first_error;
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    absl::StatusOr<RegressionFit> fitted =
        FitFinite(problem, kinds[kind], stop);
    if (absl::IsCancelled(fitted.status())) return fitted.status();
    if (!fitted.ok()) {
      first_error.Update(fitted.status());
      continue;
    }
    const double density = HeldOutLogDensity(problem, *fitted);
    if (best.has_value() && density <= best_density) continue;
    best = LikeliestFit{*std::move(fitted), kind};
    best_density = density;
  }
  if (!best.has_value()) return first_error;
  return *std::move(best);
}

}  // namespace cubicml
