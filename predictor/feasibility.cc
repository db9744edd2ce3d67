// SPDX-License-Identifier: Apache-2.0

#include "predictor/feasibility.h"

#include <algorithm>
#include <cmath>
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

absl::StatusOr<FeasibilityFit> FitKind(const TargetRows& rows,
                                       const RegressorKind& kind,
                                       const std::stop_token& stop) {
  const double rate = Rate(rows);
  FeasibilityFit result;
  CUBICML_ASSIGN_OR_RETURN(RegressionFit regression,
                           kind.fit(rows.problem(), stop));
  const Curve curve = FitCurve(regression.held_out, rows, {0.0, 2.0});
  std::vector<double> scores;
  std::vector<bool> labels;
  double constant_loss = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < rows.targets.size(); ++i) {
    const bool feasible = rows.targets[i] > 0.0;
    const double x = regression.held_out[i].mean;
    const double w = rows.weights[i];
    result.log_loss +=
        w * LogLoss(Sigmoid(curve.offset + curve.slope * x), feasible);
    constant_loss += w * LogLoss(rate, feasible);
    total += w;
    scores.push_back(x);
    labels.push_back(feasible);
  }
  result.auc = AreaUnderRoc(scores, labels);
  if (result.log_loss < constant_loss) {
    result.model = std::make_unique<FeasibilityModel>(
        std::move(regression.regressor),
        curve.offset + curve.slope * regression.levels[0], curve.slope);
  } else {
    // It has learnt nothing yet.
    result.model = std::make_unique<FeasibilityModel>(rate);
    result.log_loss = constant_loss;
  }
  result.log_loss /= total;
  return result;
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
  FeasibilityFit best;
  for (const RegressorKind& kind : kinds) {
    const TargetRows rows = SelectFeasibility(set, kind.max_rows, rng);
    if (rows.constant) {
      if (best.model == nullptr) {
        best.model = std::make_unique<FeasibilityModel>(Rate(rows));
      }
      continue;
    }
    CUBICML_ASSIGN_OR_RETURN(FeasibilityFit fit, FitKind(rows, kind, stop));
    // A sample without failures has no log loss to compare.
    if (!best.auc.has_value() || fit.log_loss < best.log_loss) {
      best = std::move(fit);
    }
  }
  return best;
}

}  // namespace cubicml
