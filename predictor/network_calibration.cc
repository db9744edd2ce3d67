// SPDX-License-Identifier: Apache-2.0

#include "predictor/network_calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace cubicml {
namespace {

// Of what held-out rows are off by, this share is put down to not knowing, the
// rest to noise: single measurements cannot tell the two apart, and a spread
// of 0 would end exploration.
constexpr double kIgnorance = 0.5;
constexpr double kFloorShare = 0.1;

using Outputs = std::vector<std::vector<double>>;  // by member, by row

// Outputs of all members, each around the mean of its groups and of unit
// spread over them. Fills in the members' offset and slope accordingly.
absl::StatusOr<Outputs> Standardise(const RegressionProblem& problem,
                                    NetworkEnsemble* ensemble) {
  const size_t rows = problem.features->rows;
  Outputs outputs(ensemble->members.size(), std::vector<double>(rows));
  for (size_t m = 0; m < outputs.size(); ++m) {
    std::vector<double>& out = outputs[m];
    RunNetwork(*ensemble, m, *problem.features, 0, out);
    const size_t groups = static_cast<size_t>(problem.group_count);
    std::vector<double> sums(groups, 0.0);
    std::vector<double> counts(groups, 0.0);
    double mean = 0.0;
    for (size_t i = 0; i < rows; ++i) {
      if (!std::isfinite(out[i])) {
        return absl::InternalError("a network is not finite");
      }
      sums[static_cast<size_t>(problem.groups[i])] += out[i];
      counts[static_cast<size_t>(problem.groups[i])] += 1.0;
      mean += out[i] / static_cast<double>(rows);
    }
    double squares = 0.0;
    for (size_t i = 0; i < rows; ++i) {
      const size_t g = static_cast<size_t>(problem.groups[i]);
      const double d = out[i] - sums[g] / counts[g];
      squares += d * d;
    }
    const double spread = std::sqrt(squares / static_cast<double>(rows));
    const double slope = spread > 0.0 ? 1.0 / spread : 0.0;
    ensemble->members[m].slope = slope;
    ensemble->members[m].offset = -slope * mean;
    for (double& o : out) o = slope * (o - mean);
  }
  return outputs;
}

// Whether member `m` was trained on row `i`.
bool Saw(const RegressionProblem& problem, size_t m, size_t i) {
  return problem.fold_count == 1 || problem.folds[i] != static_cast<int>(m);
}

// For each group the mean of `values` over the rows that member `m` saw; NaN
// where it saw none.
std::vector<double> SeenMeans(const RegressionProblem& problem, size_t m,
                              const std::vector<double>& values) {
  const size_t groups = static_cast<size_t>(problem.group_count);
  std::vector<double> sums(groups, 0.0);
  std::vector<double> weights(groups, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Saw(problem, m, i)) continue;
    const size_t g = static_cast<size_t>(problem.groups[i]);
    sums[g] += problem.weights[i] * values[i];
    weights[g] += problem.weights[i];
  }
  for (size_t g = 0; g < groups; ++g) sums[g] /= weights[g];
  return sums;
}

}  // namespace

absl::StatusOr<RegressionFit> CalibrateNetworks(
    const RegressionProblem& problem, NetworkEnsemble ensemble) {
  absl::StatusOr<Outputs> standardised = Standardise(problem, &ensemble);
  if (!standardised.ok()) return std::move(standardised).status();
  const Outputs& outputs = *standardised;
  const size_t rows = problem.features->rows;
  const size_t members = outputs.size();
  const std::vector<double> targets(problem.targets.begin(),
                                    problem.targets.end());
  // Held-out output and target of each row, around its group's.
  std::vector<double> x(rows, 0.0);
  std::vector<double> y(rows, 0.0);
  std::vector<double> spread(rows, 0.0);
  double xx = 1e-12;
  double xy = 0.0;
  for (size_t m = 0; m < members; ++m) {
    const std::vector<double> out_means = SeenMeans(problem, m, outputs[m]);
    const std::vector<double> target_means = SeenMeans(problem, m, targets);
    for (size_t i = 0; i < rows; ++i) {
      if (problem.fold_count > 1 && Saw(problem, m, i)) continue;
      const size_t g = static_cast<size_t>(problem.groups[i]);
      const bool known = std::isfinite(out_means[g]);
      x[i] = outputs[m][i] - (known ? out_means[g] : outputs[m][i]);
      y[i] = targets[i] - (known ? target_means[g] : targets[i]);
      xx += problem.weights[i] * x[i] * x[i];
      xy += problem.weights[i] * x[i] * y[i];
    }
  }
  const double slope = std::max(xy / xx, 0.0);
  RegressionFit fit;
  double squares = 0.0;
  double spreads = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < rows; ++i) {
    double mean = 0.0;
    for (size_t m = 0; m < members; ++m) mean += outputs[m][i];
    mean /= static_cast<double>(members);
    for (size_t m = 0; m < members; ++m) {
      const double d = outputs[m][i] - mean;
      spread[i] += d * d;
    }
    spread[i] *=
        slope * slope / std::max(1.0, static_cast<double>(members) - 1);
    const double w = problem.weights[i];
    const double error = y[i] - slope * x[i];
    squares += w * error * error;
    spreads += w * spread[i];
    total += w;
  }
  const double error_variance = std::max(squares / total, 1e-12);
  const double mean_spread = spreads / total;
  ensemble.spread_scale = std::sqrt(std::clamp(
      kIgnorance * error_variance / std::max(mean_spread, 1e-12), 1.0, 25.0));
  ensemble.spread_floor = std::sqrt(kFloorShare * error_variance);
  fit.noise = std::sqrt((1.0 - kIgnorance) * error_variance);
  for (NetworkEnsemble::Member& member : ensemble.members) {
    member.slope *= slope;
    member.offset *= slope;
  }
  std::vector<double> remainder(rows, 0.0);
  for (size_t i = 0; i < rows; ++i) {
    fit.held_out.push_back(
        {targets[i] - y[i] + slope * x[i],
         std::hypot(ensemble.spread_scale * std::sqrt(spread[i]),
                    ensemble.spread_floor)});
    double score = 0.0;
    for (size_t m = 0; m < members; ++m) score += slope * outputs[m][i];
    remainder[i] = targets[i] - score / static_cast<double>(members);
  }
  RegressionProblem everything = problem;
  everything.fold_count = 1;
  fit.levels = SeenMeans(everything, 0, remainder);
  fit.regressor = NewNetworkRegressor(std::move(ensemble));
  return fit;
}

}  // namespace cubicml
