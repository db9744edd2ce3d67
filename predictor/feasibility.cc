// SPDX-License-Identifier: Apache-2.0

#include "predictor/feasibility.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "predictor/quality.h"

namespace cubicml {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Curve {
  double offset = 0.0;
  double slope = 0.0;
};

// Newton's method on the two parameters. The prior holds the slope near that of
// an honest regressor (whose output is 2 p - 1) while rows are few.
Curve FitCurve(const std::vector<Belief>& beliefs, const TargetRows& rows,
               Curve start) {
  constexpr double kPriorPrecision = 1.0;
  Curve curve = start;
  for (int step = 0; step < 30; ++step) {
    double g0 = -kPriorPrecision * (curve.offset - start.offset);
    double g1 = -kPriorPrecision * (curve.slope - start.slope);
    double h00 = kPriorPrecision;
    double h01 = 0.0;
    double h11 = kPriorPrecision;
    for (size_t i = 0; i < beliefs.size(); ++i) {
      const double x = beliefs[i].mean;
      const double p = Sigmoid(curve.offset + curve.slope * x);
      const double w = rows.weights[i];
      const double error = (rows.targets[i] > 0.0 ? 1.0 : 0.0) - p;
      const double curvature = w * p * (1.0 - p);
      g0 += w * error;
      g1 += w * error * x;
      h00 += curvature;
      h01 += curvature * x;
      h11 += curvature * x * x;
    }
    const double determinant = h00 * h11 - h01 * h01;
    // The step is bounded: far from the solution the curvature vanishes.
    const double d0 = (h11 * g0 - h01 * g1) / determinant;
    const double d1 = (h00 * g1 - h01 * g0) / determinant;
    curve.offset += std::clamp(d0, -2.0, 2.0);
    curve.slope += std::clamp(d1, -2.0, 2.0);
    if (std::abs(d0) + std::abs(d1) < 1e-10) break;
  }
  // More of what works must not mean less likely to work.
  curve.slope = std::max(curve.slope, 0.0);
  return curve;
}

double LogLoss(double p, bool feasible) {
  const double q = std::clamp(p, 1e-9, 1.0 - 1e-9);
  return -std::log(feasible ? q : 1.0 - q);
}

// The share of rows that work, as if two more had been seen.
double Rate(const TargetRows& rows) {
  double works = 1.0;
  double total = 2.0;
  for (size_t i = 0; i < rows.targets.size(); ++i) {
    total += rows.weights[i];
    if (rows.targets[i] > 0.0) works += rows.weights[i];
  }
  return works / total;
}

// A fit of one kind, and how well it told each of its rows when that was held
// out.
struct KindFit {
  FeasibilityFit fit;
  std::vector<size_t> index;  // of the rows, increasing
  std::vector<double> losses;
  std::vector<double> weights;
};

double WeightedMean(const std::vector<double>& values,
                    const std::vector<double>& weights) {
  const double sum =
      std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  return sum / std::accumulate(weights.begin(), weights.end(), 0.0);
}

absl::StatusOr<KindFit> FitKind(const TargetRows& rows,
                                const RegressorKind& kind,
                                const std::stop_token& stop) {
  KindFit result{{}, rows.index, {}, rows.weights};
  CUBICML_ASSIGN_OR_RETURN(RegressionFit regression,
                           kind.fit(rows.problem(), stop));
  const Curve curve = FitCurve(regression.held_out, rows, {0.0, 2.0});
  const double rate = Rate(rows);
  std::vector<double> scores;
  std::vector<bool> labels;
  std::vector<double> constant_losses;
  for (size_t i = 0; i < rows.targets.size(); ++i) {
    const bool feasible = rows.targets[i] > 0.0;
    const double x = regression.held_out[i].mean;
    result.losses.push_back(
        LogLoss(Sigmoid(curve.offset + curve.slope * x), feasible));
    constant_losses.push_back(LogLoss(rate, feasible));
    scores.push_back(x);
    labels.push_back(feasible);
  }
  if (WeightedMean(result.losses, rows.weights) <
      WeightedMean(constant_losses, rows.weights)) {
    result.fit.model = std::make_unique<FeasibilityModel>(
        std::move(regression.regressor),
        curve.offset + curve.slope * regression.levels[0], curve.slope);
  } else {
    // It has learnt nothing yet.
    result.fit.model = std::make_unique<FeasibilityModel>(rate);
    result.losses = std::move(constant_losses);
  }
  result.fit.auc = AreaUnderRoc(scores, labels);
  result.fit.log_loss = WeightedMean(result.losses, rows.weights);
  return result;
}

// Whether `a` tells the rows that both have seen better, or all of its rows
// where they share none.
bool IsBetter(const KindFit& a, const KindFit& b) {
  double difference = 0.0;
  bool share = false;
  for (size_t i = 0, j = 0; i < a.index.size(); ++i) {
    while (j < b.index.size() && b.index[j] < a.index[i]) ++j;
    if (j == b.index.size()) break;
    if (b.index[j] != a.index[i]) continue;
    difference += a.weights[i] * (a.losses[i] - b.losses[j]);
    share = true;
  }
  return share ? difference < 0.0 : a.fit.log_loss < b.fit.log_loss;
}

}  // namespace

FeasibilityModel::FeasibilityModel(double probability)
    : offset_(std::log(probability / (1.0 - probability))) {}

FeasibilityModel::FeasibilityModel(std::unique_ptr<Regressor> regressor,
                                   double offset, double slope)
    : regressor_(std::move(regressor)), offset_(offset), slope_(slope) {}

void FeasibilityModel::Predict(const FeatureMatrix& features, size_t begin,
                               std::span<double> probabilities) const {
  if (regressor_ == nullptr) {
    std::fill(probabilities.begin(), probabilities.end(), Sigmoid(offset_));
    return;
  }
  std::vector<Belief> beliefs(probabilities.size());
  regressor_->Predict(features, begin, beliefs);
  for (size_t i = 0; i < beliefs.size(); ++i) {
    probabilities[i] = Sigmoid(offset_ + slope_ * beliefs[i].mean);
  }
}

void FeasibilityModel::Save(internal::FeasibilityModel* proto) const {
  if (regressor_ != nullptr) regressor_->Save(proto->mutable_regressor());
  proto->set_offset(offset_);
  proto->set_slope(slope_);
}

absl::StatusOr<std::unique_ptr<FeasibilityModel>> FeasibilityModel::Load(
    const internal::FeasibilityModel& proto, size_t columns) {
  std::unique_ptr<Regressor> regressor;
  if (proto.has_regressor()) {
    CUBICML_ASSIGN_OR_RETURN(regressor,
                             LoadRegressor(proto.regressor(), columns));
  }
  return std::make_unique<FeasibilityModel>(std::move(regressor),
                                            proto.offset(), proto.slope());
}

absl::StatusOr<FeasibilityFit> FitFeasibility(
    const TrainingSet& set, const std::vector<RegressorKind>& kinds, Rng* rng,
    const std::stop_token& stop) {
  std::optional<KindFit> best;
  std::unique_ptr<FeasibilityModel> constant;
  for (const RegressorKind& kind : kinds) {
    const TargetRows rows = SelectFeasibility(set, kind.max_rows, rng);
    // A sample without failures has no log loss to compare.
    if (rows.constant) {
      constant = std::make_unique<FeasibilityModel>(Rate(rows));
      continue;
    }
    CUBICML_ASSIGN_OR_RETURN(KindFit fit, FitKind(rows, kind, stop));
    if (!best.has_value() || IsBetter(fit, *best)) best = std::move(fit);
  }
  if (best.has_value()) return std::move(best->fit);
  FeasibilityFit fit;
  fit.model = std::move(constant);
  return fit;
}

}  // namespace cubicml
