// SPDX-License-Identifier: Apache-2.0
//
// A trained model. Trainer makes one, the server keeps the newest and replaces
// it while others read it.

#ifndef CUBICML_PREDICTOR_PREDICTOR_H_
#define CUBICML_PREDICTOR_PREDICTOR_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/dataset.h"
#include "predictor/target_scale.h"

namespace cubicml {

// What is expected of one configuration, in the metric's own unit.
struct MetricForecast {
  // Of a metric that is learnt as its logarithm the median, which few rows move
  // less: the mean of a log-normal distribution grows with what is not known.
  double mean = 0.0;
  double stddev = 0.0;  // of a new measurement
  double lower90 = 0.0;
  double upper90 = 0.0;
  // The same on the scale of the model, where a new measurement is normal.
  TargetScale scale;
  double target = 0.0;
  double target_stddev = 0.0;
  // Share of `target_stddev` that is left when a measurement has no noise: what
  // is not known of the configuration, and of how its context differs from
  // others.
  double noiseless_share = 1.0;
};

struct Forecast {
  // As Dataset.metrics; NaN where a metric was never measured or not asked for.
  std::vector<MetricForecast> metrics;
  // That it runs at all; ProbabilityWithin() says whether its metrics are kept.
  double feasible_probability = 1.0;
  // Ranking score of the first objective: higher is better whatever its goal,
  // comparable within one context and one predictor only.
  double score = 0.0;
  // Standard deviation of what the model believes of `score`.
  double score_stddev = 0.0;
};

// Immutable and thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // "linear", "gaussian-process" or "mlp-ensemble".
  virtual absl::string_view kind() const = 0;

  // One forecast for each row. INVALID_ARGUMENT when the number of columns is
  // not that of training, or a feature is not finite.
  virtual absl::StatusOr<std::vector<Forecast>> Predict(
      const FeatureMatrix& features) const = 0;

  // Only what ranking needs (score, score_stddev, feasible_probability), for
  // scoring millions of candidates, and the metrics of these indices: where
  // there are none, `forecast.metrics` stay empty.
  virtual absl::StatusOr<std::vector<Forecast>> Score(
      const FeatureMatrix& features, std::span<const size_t> metrics) const = 0;
  absl::StatusOr<std::vector<Forecast>> Score(
      const FeatureMatrix& features) const {
    return Score(features, {});
  }

  // Held-out figures found while training; version and times are not set.
  virtual const v1::SurrogateQuality& quality() const = 0;

  // Bytes that Trainer::Load turns into an equal predictor.
  virtual std::string Serialize() const = 0;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_PREDICTOR_H_
