// SPDX-License-Identifier: Apache-2.0

#include "predictor/network_calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"

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

// For each group the mean of `values` over the rows that member `m` saw; that
// over all groups where it saw none.
std::vector<double> SeenMeans(const RegressionProblem& problem, size_t m,
                              const std::vector<double>& values) {
  const size_t groups = static_cast<size_t>(problem.group_count);
  std::vector<double> sums(groups, 0.0);
  std::vector<double> weights(groups, 0.0);
  double sum = 0.0;
  double weight = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!Saw(problem, m, i)) continue;
    const size_t g = static_cast<size_t>(problem.groups[i]);
    sums[g] += problem.weights[i] * values[i];
    weights[g] += problem.weights[i];
    sum += problem.weights[i] * values[i];
    weight += problem.weights[i];
  }
  for (size_t g = 0; g < groups; ++g) {
    sums[g] = weights[g] > 0.0 ? sums[g] / weights[g] : sum / weight;
  }
  return sums;
}

// What the networks say of the rows that they have not seen, around the mean of
// what they saw of each row's group.
struct HeldOutRows {
  std::vector<double> outputs;
  std::vector<double> targets;
  std::vector<double> variances;  // of all members' outputs
  // A group that a member knows nothing of tells nothing of how good it is.
  std::vector<bool> known;
  double slope = 0.0;  // of the targets over the outputs
};

HeldOutRows CompareHeldOut(const RegressionProblem& problem,
                           const Outputs& outputs) {
  const size_t rows = problem.targets.size();
  const std::vector<double> targets(problem.targets.begin(),
                                    problem.targets.end());
  HeldOutRows held_out;
  held_out.outputs.assign(rows, 0.0);
  held_out.targets.assign(rows, 0.0);
  held_out.known = FindKnownLevels(problem);
  double xx = 1e-12;
  double xy = 0.0;
  for (size_t m = 0; m < outputs.size(); ++m) {
    const std::vector<double> out_means = SeenMeans(problem, m, outputs[m]);
    const std::vector<double> target_means = SeenMeans(problem, m, targets);
    for (size_t i = 0; i < rows; ++i) {
      if (problem.fold_count > 1 && Saw(problem, m, i)) continue;
      const size_t g = static_cast<size_t>(problem.groups[i]);
      const double x = outputs[m][i] - out_means[g];
      const double y = targets[i] - target_means[g];
      held_out.outputs[i] = x;
      held_out.targets[i] = y;
      if (!held_out.known[i]) continue;
      xx += problem.weights[i] * x * x;
      xy += problem.weights[i] * x * y;
    }
  }
  held_out.slope = std::max(xy / xx, 0.0);
  const double members = static_cast<double>(outputs.size());
  held_out.variances.assign(rows, 0.0);
  for (size_t i = 0; i < rows; ++i) {
    double mean = 0.0;
    for (const std::vector<double>& out : outputs) mean += out[i] / members;
    for (const std::vector<double>& out : outputs) {
      held_out.variances[i] +=
          (out[i] - mean) * (out[i] - mean) / std::max(1.0, members - 1.0);
    }
  }
  return held_out;
}

// Sets the members' slopes and the spread of the ensemble. Returns the standard
// deviation of the noise.
double SetSpread(const RegressionProblem& problem, const HeldOutRows& held_out,
                 NetworkEnsemble* ensemble) {
  double squares = 0.0;
  double variances = 0.0;
  double total = 0.0;
  const bool any_known = std::find(held_out.known.begin(), held_out.known.end(),
                                   true) != held_out.known.end();
  for (size_t i = 0; i < held_out.targets.size(); ++i) {
    if (any_known && !held_out.known[i]) continue;
    const double w = problem.weights[i];
    const double error =
        held_out.targets[i] - held_out.slope * held_out.outputs[i];
    squares += w * error * error;
    variances += w * held_out.slope * held_out.slope * held_out.variances[i];
    total += w;
  }
  const double error_variance = std::max(squares / total, 1e-12);
  ensemble->spread_scale = std::sqrt(std::clamp(
      kIgnorance * error_variance / std::max(variances / total, 1e-12), 1.0,
      25.0));
  ensemble->spread_floor = std::sqrt(kFloorShare * error_variance);
  for (NetworkEnsemble::Member& member : ensemble->members) {
    member.slope *= held_out.slope;
    member.offset *= held_out.slope;
  }
  return std::sqrt((1.0 - kIgnorance) * error_variance);
}

}  // namespace

absl::StatusOr<RegressionFit> CalibrateNetworks(
    const RegressionProblem& problem, NetworkEnsemble ensemble) {
  CUBICML_ASSIGN_OR_RETURN(const Outputs outputs,
                           Standardise(problem, &ensemble));
  const HeldOutRows held_out = CompareHeldOut(problem, outputs);
  RegressionFit fit;
  fit.noise = SetSpread(problem, held_out, &ensemble);
  const double members = static_cast<double>(outputs.size());
  std::vector<double> remainder(problem.targets.begin(), problem.targets.end());
  for (size_t i = 0; i < remainder.size(); ++i) {
    const double x = held_out.slope * held_out.outputs[i];
    const double spread = ensemble.spread_scale * held_out.slope *
                          std::sqrt(held_out.variances[i]);
    fit.held_out.push_back({problem.targets[i] - held_out.targets[i] + x,
                            std::hypot(spread, ensemble.spread_floor)});
    for (const std::vector<double>& out : outputs) {
      remainder[i] -= held_out.slope * out[i] / members;
    }
  }
  RegressionProblem everything = problem;
  everything.fold_count = 1;
  fit.levels = SeenMeans(everything, 0, remainder);
  fit.regressor = NewNetworkRegressor(std::move(ensemble));
  return fit;
}

}  // namespace cubicml
