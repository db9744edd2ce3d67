// SPDX-License-Identifier: Apache-2.0
//
// What a surrogate forecasts one metric with.

#ifndef CUBICML_PREDICTOR_METRIC_HEAD_H_
#define CUBICML_PREDICTOR_METRIC_HEAD_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cubicml/internal/checkpoint.pb.h"
#include "predictor/predictor.h"
#include "predictor/quality.h"
#include "predictor/regressor.h"
#include "predictor/training_set.h"

namespace cubicml {

// On the scale of its target: the intercept, the score where it is part of it,
// and the regressors. Const methods are thread-safe.
struct MetricHead {
  TargetScale scale;
  bool uses_score = false;
  std::vector<std::unique_ptr<Regressor>> regressors;
  double intercept = 0.0;
  // Of a measurement around the sum of those, and the part of it that comes of
  // measuring. The rest is not known: how a context that is new differs from
  // others, or how much configurations do where hardly any were measured.
  double noise = 0.0;
  double measuring_noise = 0.0;
  SpreadCalibration spread;

  // Of what the parts add up to, as normal distribution.
  MetricForecast Forecast(double mean, double variance) const;

  void Save(internal::MetricHead* proto) const;
};

// The inverse of Save. DATA_LOSS when a regressor is not one over `columns`
// columns.
absl::StatusOr<MetricHead> LoadMetricHead(const internal::MetricHead& proto,
                                          size_t columns);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_METRIC_HEAD_H_
