// SPDX-License-Identifier: Apache-2.0

#include "predictor/surrogate_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "cubicml/internal/checkpoint.pb.h"
#include "predictor/fnv_hash.h"
#include "predictor/linear_regressor.h"
#include "predictor/metric_head.h"

namespace cubicml {
namespace {

constexpr uint32_t kFormat = 2;
constexpr size_t kPredictedTogether = 256;
// Of one or two rows, or equal ones, nobody knows how much others differ.
constexpr double kConstantSpread = 0.1;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MetricForecast UnknownForecast() {
  MetricForecast unknown;
  unknown.mean = kNan;
  unknown.stddev = kNan;
  unknown.lower90 = kNan;
  unknown.upper90 = kNan;
  return unknown;
}

struct Parts {
  std::string kind;
  std::vector<float> column_scales;
  std::unique_ptr<Regressor> score;
  std::vector<MetricHead> heads;
  std::unique_ptr<FeasibilityModel> feasibility;
  v1::SurrogateQuality quality;
};

class SurrogateModel : public Predictor {
 public:
  explicit SurrogateModel(Parts parts) : parts_(std::move(parts)) {
    scaled_ =
        std::any_of(parts_.column_scales.begin(), parts_.column_scales.end(),
                    [](float scale) { return scale != 1.0F; });
  }

  absl::string_view kind() const override { return parts_.kind; }
  const v1::SurrogateQuality& quality() const override {
    return parts_.quality;
  }

  absl::StatusOr<std::vector<Forecast>> Score(
      const FeatureMatrix& features,
      std::span<const size_t> metrics) const override {
    return Forecasts(features, metrics);
  }
  absl::StatusOr<std::vector<Forecast>> Predict(
      const FeatureMatrix& features) const override {
    std::vector<size_t> all(parts_.heads.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return Forecasts(features, all);
  }

  std::string Serialize() const override;

 private:
  absl::StatusOr<std::vector<Forecast>> Forecasts(
      const FeatureMatrix& features, std::span<const size_t> metrics) const;
  absl::Status Check(const FeatureMatrix& features) const;
  // `scores` are the beliefs about the score of rows [begin, ...).
  void AddMetrics(const FeatureMatrix& features, size_t begin,
                  std::span<const size_t> metrics,
                  std::span<const Belief> scores,
                  std::span<Forecast> forecasts) const;

  Parts parts_;
  bool scaled_ = false;
};

absl::Status SurrogateModel::Check(const FeatureMatrix& features) const {
  if (features.columns != parts_.column_scales.size() ||
      features.values.size() != features.rows * features.columns) {
    return FieldError("features", "must have the columns of training");
  }
  for (const float value : features.values) {
    if (!std::isfinite(value)) {
      return FieldError("features", "must be finite");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Forecast>> SurrogateModel::Forecasts(
    const FeatureMatrix& features, std::span<const size_t> metrics) const {
  CUBICML_RETURN_IF_ERROR(Check(features));
  FeatureMatrix copy;
  if (scaled_) {
    copy = features;
    for (size_t k = 0; k < copy.values.size(); ++k) {
      copy.values[k] *= parts_.column_scales[k % copy.columns];
    }
  }
  const FeatureMatrix& x = scaled_ ? copy : features;
  std::vector<Forecast> forecasts(x.rows);
  std::vector<Belief> beliefs(kPredictedTogether);
  std::vector<double> probabilities(kPredictedTogether);
  for (size_t begin = 0; begin < x.rows; begin += kPredictedTogether) {
    const size_t count = std::min(kPredictedTogether, x.rows - begin);
    const std::span<Belief> scores(beliefs.data(), count);
    parts_.score->Predict(x, begin, scores);
    parts_.feasibility->Predict(x, begin,
                                std::span<double>(probabilities.data(), count));
    for (size_t i = 0; i < count; ++i) {
      Forecast& forecast = forecasts[begin + i];
      forecast.score = scores[i].mean;
      forecast.score_stddev = scores[i].stddev;
      forecast.feasible_probability = probabilities[i];
    }
    if (!metrics.empty()) {
      AddMetrics(x, begin, metrics, scores,
                 std::span<Forecast>(&forecasts[begin], count));
    }
  }
  return forecasts;
}

void SurrogateModel::AddMetrics(const FeatureMatrix& features, size_t begin,
                                std::span<const size_t> metrics,
                                std::span<const Belief> scores,
                                std::span<Forecast> forecasts) const {
  std::vector<Belief> beliefs(forecasts.size());
  std::vector<double> means(forecasts.size());
  std::vector<double> variances(forecasts.size());
  for (Forecast& forecast : forecasts) {
    forecast.metrics.assign(parts_.heads.size(), UnknownForecast());
  }
  for (const size_t metric : metrics) {
    if (metric >= parts_.heads.size()) continue;
    const MetricHead& head = parts_.heads[metric];
    std::fill(means.begin(), means.end(), head.intercept);
    std::fill(variances.begin(), variances.end(), 0.0);
    const auto add = [&](std::span<const Belief> part) {
      for (size_t i = 0; i < part.size(); ++i) {
        means[i] += part[i].mean;
        variances[i] += part[i].stddev * part[i].stddev;
      }
    };
    if (head.uses_score) add(scores);
    for (const std::unique_ptr<Regressor>& regressor : head.regressors) {
      regressor->Predict(features, begin, beliefs);
      add(beliefs);
    }
    for (size_t i = 0; i < forecasts.size(); ++i) {
      forecasts[i].metrics[metric] = head.Forecast(means[i], variances[i]);
    }
  }
}

std::string SurrogateModel::Serialize() const {
  internal::Checkpoint checkpoint;
  checkpoint.set_kind(parts_.kind);
  checkpoint.mutable_column_scales()->Add(parts_.column_scales.begin(),
                                          parts_.column_scales.end());
  parts_.score->Save(checkpoint.mutable_score());
  for (const MetricHead& head : parts_.heads) {
    head.Save(checkpoint.add_heads());
  }
  parts_.feasibility->Save(checkpoint.mutable_feasibility());
  *checkpoint.mutable_quality() = parts_.quality;
  internal::CheckpointFile file;
  file.set_format(kFormat);
  checkpoint.SerializeToString(file.mutable_payload());
  file.set_checksum(FnvHash(file.payload()));
  return file.SerializeAsString();
}

// The levels of the contexts, as a function of the features: what the level of
// a context that was not seen would be.
absl::StatusOr<RegressionFit> FitLevels(const TargetRows& rows,
                                        const RegressionFit& fit,
                                        const std::stop_token& stop) {
  std::vector<double> targets;
  for (const int group : rows.groups) {
    targets.push_back(fit.levels[static_cast<size_t>(group)]);
  }
  const std::vector<int> zeros(rows.groups.size(), 0);
  RegressionProblem problem = rows.problem();
  problem.targets = targets;
  problem.groups = zeros;
  problem.group_count = 1;
  problem.folds = zeros;
  problem.fold_count = 1;
  return FitLinear(problem, stop);
}

// A head and how far off it was on held-out rows, in standard deviations.
struct BuiltHead {
  MetricHead head;
  std::vector<double> residuals;
  std::vector<int> folds;  // of residuals
  int fold_count = 1;
};

// A head whose part within a context is `fit`. The regressor of `fit` is left
// where it is.
absl::StatusOr<BuiltHead> BuildHead(const TargetRows& rows,
                                    const RegressionFit& fit,
                                    const std::stop_token& stop) {
  BuiltHead built;
  MetricHead& head = built.head;
  head.scale = rows.scale;
  head.noise = fit.noise;
  head.measuring_noise = fit.noise;
  head.intercept = fit.levels[0];
  std::vector<Belief> beliefs = fit.held_out;
  if (rows.group_count > 1) {
    CUBICML_ASSIGN_OR_RETURN(RegressionFit levels, FitLevels(rows, fit, stop));
    head.intercept = levels.levels[0];
    head.noise = std::hypot(fit.noise, levels.noise);
    head.regressors.push_back(std::move(levels.regressor));
    for (size_t i = 0; i < beliefs.size(); ++i) {
      const Belief& level = levels.held_out[i];
      beliefs[i].mean +=
          level.mean - fit.levels[static_cast<size_t>(rows.groups[i])];
      beliefs[i].stddev = std::hypot(beliefs[i].stddev, level.stddev);
    }
  }
  const std::vector<bool> known = FindKnownLevels(rows.problem());
  for (size_t i = 0; i < beliefs.size(); ++i) {
    // The level of its group is from the row itself, so it looks easy.
    if (!known[i]) continue;
    const double variance = beliefs[i].stddev * beliefs[i].stddev +
                            head.noise * head.noise / rows.weights[i];
    built.residuals.push_back((rows.targets[i] - beliefs[i].mean) /
                              std::sqrt(std::max(variance, 1e-24)));
    built.folds.push_back(rows.folds[i]);
  }
  built.fold_count = rows.fold_count;
  head.spread = CalibrateSpread(built.residuals);
  return built;
}

// A head that expects what was measured so far, whatever the configuration.
MetricHead MakeConstantHead(const TargetRows& rows) {
  MetricHead head;
  head.scale = rows.scale;
  if (rows.targets.empty()) {
    // Nothing was measured: nothing is known, which no number says.
    head.intercept = kNan;
    return head;
  }
  const double count = static_cast<double>(rows.targets.size());
  double mean = 0.0;
  for (const double target : rows.targets) mean += target / count;
  double squares = 0.0;
  for (const double target : rows.targets) {
    squares += (target - mean) * (target - mean);
  }
  const double spread = std::sqrt(squares / std::max(count - 1.0, 1.0));
  const double value = head.scale.Inverse(mean);
  const double higher = value + kConstantSpread * std::abs(value);
  head.noise = std::max(spread, std::abs(head.scale.Forward(higher) - mean));
  head.intercept = mean;
  return head;
}

// A head with regressors of its own.
absl::StatusOr<BuiltHead> FitHead(const TrainingSet& set, size_t metric,
                                  const HeadOptions& options, Rng* rng,
                                  const std::stop_token& stop) {
  const TargetRows rows =
      SelectMetric(set, metric, options.max_metric_rows, rng);
  if (rows.targets.size() < 3 || rows.constant) {
    BuiltHead built;
    built.head = MakeConstantHead(rows);
    return built;
  }
  CUBICML_ASSIGN_OR_RETURN(LikeliestFit likeliest,
                           FitLikeliest(rows.problem(), options.metrics, stop));
  RegressionFit& fit = likeliest.fit;
  CUBICML_ASSIGN_OR_RETURN(BuiltHead built, BuildHead(rows, fit, stop));
  built.head.regressors.push_back(std::move(fit.regressor));
  return built;
}

void FillQuality(const TrainingSet& set, const ScoreFit& score,
                 const BuiltHead& objective, v1::SurrogateQuality* quality) {
  quality->set_rows(static_cast<int64_t>(set.rows.size()));
  std::vector<double> predicted;
  for (size_t i = 0; i < score.fit.held_out.size(); ++i) {
    predicted.push_back(score.fit.held_out[i].mean);
  }
  const TargetRows& rows = score.rows;
  if (const auto tau = KendallTau(predicted, rows.targets, rows.groups)) {
    quality->set_kendall_tau(*tau);
  }
  if (const auto coverage = HeldOutCoverage(
          objective.residuals, objective.folds, objective.fold_count)) {
    quality->set_coverage90(*coverage);
  }
}

bool IsFinite(const MetricForecast& forecast) {
  return std::isfinite(forecast.mean) && std::isfinite(forecast.stddev) &&
         std::isfinite(forecast.lower90) && std::isfinite(forecast.upper90) &&
         std::isfinite(forecast.target) &&
         std::isfinite(forecast.target_stddev) &&
         std::isfinite(forecast.noiseless_share);
}

bool IsMeasured(const TrainingSet& set, size_t metric) {
  return std::any_of(
      set.rows.begin(), set.rows.end(), [metric](const DatasetRow& row) {
        return metric < row.metrics.size() && !std::isnan(row.metrics[metric]);
      });
}

// Of a metric that was never measured nothing is known, which is no fault. Of
// any other it would pass for that: searches would take its bounds for kept.
absl::Status CheckFinite(const TrainingSet& set, const Predictor& predictor) {
  FeatureMatrix features = set.features;
  for (size_t k = 0; k < features.values.size(); ++k) {
    features.values[k] /= set.column_scales[k % features.columns];
  }
  features.rows = std::min(features.rows, kPredictedTogether);
  features.values.resize(features.rows * features.columns);
  CUBICML_ASSIGN_OR_RETURN(const std::vector<Forecast> forecasts,
                           predictor.Predict(features));
  for (const Forecast& forecast : forecasts) {
    if (!std::isfinite(forecast.score) ||
        !std::isfinite(forecast.score_stddev) ||
        !std::isfinite(forecast.feasible_probability)) {
      return absl::InternalError("the model is not finite");
    }
  }
  for (size_t metric = 0; metric < set.metrics.size(); ++metric) {
    if (!IsMeasured(set, metric)) continue;
    for (const Forecast& forecast : forecasts) {
      if (!IsFinite(forecast.metrics[metric])) {
        return absl::InternalError(absl::StrCat(
            "the model of \"", set.metrics[metric].name, "\" is not finite"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

ScoreFit SelectScore(const TrainingSet& set, ScoreScale scale, size_t max_rows,
                     Rng* rng) {
  ScoreFit score;
  score.rows = SelectMetric(set, 0, max_rows, rng);
  TargetRows& rows = score.rows;
  if (!set.metrics[0].maximize) {
    for (double& target : rows.targets) target = -target;
    rows.scale.scale = -rows.scale.scale;
  }
  if (scale == ScoreScale::kShareOfBest && rows.scale.logarithmic) {
    score.scale = scale;
    std::vector<double> best(static_cast<size_t>(rows.group_count), -HUGE_VAL);
    for (size_t i = 0; i < rows.targets.size(); ++i) {
      double& of_group = best[static_cast<size_t>(rows.groups[i])];
      of_group = std::max(of_group, rows.targets[i]);
    }
    for (size_t i = 0; i < rows.targets.size(); ++i) {
      const double behind =
          rows.targets[i] - best[static_cast<size_t>(rows.groups[i])];
      rows.targets[i] = std::exp(behind * std::abs(rows.scale.scale));
    }
  }
  return score;
}

absl::StatusOr<std::unique_ptr<Predictor>> AssembleSurrogate(
    const TrainingSet& set, absl::string_view kind, ScoreFit score,
    const HeadOptions& heads, Rng* rng, const std::stop_token& stop) {
  Parts parts;
  parts.kind = std::string(kind);
  parts.column_scales = set.column_scales;
  parts.quality.set_kind(parts.kind);
  if (score.scale == ScoreScale::kMetric) {
    CUBICML_ASSIGN_OR_RETURN(BuiltHead objective,
                             BuildHead(score.rows, score.fit, stop));
    objective.head.uses_score = true;
    FillQuality(set, score, objective, &parts.quality);
    parts.heads.push_back(std::move(objective.head));
  } else {
    CUBICML_ASSIGN_OR_RETURN(BuiltHead objective,
                             FitHead(set, 0, heads, rng, stop));
    FillQuality(set, score, objective, &parts.quality);
    parts.heads.push_back(std::move(objective.head));
  }
  for (size_t metric = 1; metric < set.metrics.size(); ++metric) {
    CUBICML_ASSIGN_OR_RETURN(BuiltHead built,
                             FitHead(set, metric, heads, rng, stop));
    parts.heads.push_back(std::move(built.head));
  }
  CUBICML_ASSIGN_OR_RETURN(FeasibilityFit feasibility,
                           FitFeasibility(set, heads.feasibility, rng, stop));
  if (feasibility.auc.has_value()) {
    parts.quality.set_feasibility_auc(*feasibility.auc);
  }
  parts.feasibility = std::move(feasibility.model);
  parts.score = std::move(score.fit.regressor);
  auto model = std::make_unique<SurrogateModel>(std::move(parts));
  CUBICML_RETURN_IF_ERROR(CheckFinite(set, *model));
  return model;
}

absl::StatusOr<std::unique_ptr<Predictor>> LoadSurrogate(
    absl::string_view checkpoint) {
  internal::CheckpointFile file;
  internal::Checkpoint proto;
  if (!file.ParseFromArray(checkpoint.data(),
                           static_cast<int>(checkpoint.size())) ||
      file.checksum() != FnvHash(file.payload())) {
    return absl::DataLossError("the checkpoint is damaged");
  }
  if (file.format() != kFormat) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint has format ", file.format(),
                     ", which this program does not read"));
  }
  if (!proto.ParseFromString(file.payload())) {
    return absl::DataLossError("the checkpoint is damaged");
  }
  Parts parts;
  parts.kind = proto.kind();
  parts.column_scales.assign(proto.column_scales().begin(),
                             proto.column_scales().end());
  const size_t columns = parts.column_scales.size();
  CUBICML_ASSIGN_OR_RETURN(parts.score, LoadRegressor(proto.score(), columns));
  for (const internal::MetricHead& head : proto.heads()) {
    CUBICML_ASSIGN_OR_RETURN(MetricHead loaded, LoadMetricHead(head, columns));
    parts.heads.push_back(std::move(loaded));
  }
  CUBICML_ASSIGN_OR_RETURN(
      parts.feasibility, FeasibilityModel::Load(proto.feasibility(), columns));
  parts.quality = proto.quality();
  return std::make_unique<SurrogateModel>(std::move(parts));
}

}  // namespace cubicml
