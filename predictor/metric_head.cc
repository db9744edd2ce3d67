// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_head.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status_macros.h"

namespace cubicml {
namespace {

// A wider spread of a logarithm says "anything", without a number so large that
// nobody can use it.
constexpr double kMaxLogSpread = 3.0;

// Half the distance of the two points that are one deviation away.
double InValues(const TargetScale& scale, double mean, double stddev) {
  const double half = 0.5 * std::abs(scale.Inverse(mean + stddev) -
                                     scale.Inverse(mean - stddev));
  if (!scale.logarithmic) return half;
  return std::min(half, scale.Inverse(mean) * std::sinh(kMaxLogSpread));
}

}  // namespace

MetricForecast MetricHead::Forecast(double mean, double variance) const {
  const double total = std::sqrt(variance + noise * noise);
  const double half = total * spread.interval_scale;
  MetricForecast forecast;
  forecast.mean = scale.Inverse(mean);
  forecast.stddev = InValues(scale, mean, total * spread.stddev_scale);
  forecast.lower90 = scale.Inverse(mean - half);
  forecast.upper90 = scale.Inverse(mean + half);
  if (scale.scale < 0.0) std::swap(forecast.lower90, forecast.upper90);
  forecast.scale = scale;
  forecast.target = mean;
  forecast.target_stddev = half / kQuantile95;
  if (total > 0.0) {
    const double unknown = noise * noise - measuring_noise * measuring_noise;
    forecast.noiseless_share =
        std::sqrt(variance + std::max(unknown, 0.0)) / total;
  }
  return forecast;
}

void MetricHead::Save(internal::MetricHead* proto) const {
  proto->set_logarithmic(scale.logarithmic);
  proto->set_centre(scale.centre);
  proto->set_scale(scale.scale);
  proto->set_focus(scale.focus);
  proto->set_width(scale.width);
  proto->set_limit(scale.limit);
  proto->set_uses_score(uses_score);
  for (const std::unique_ptr<Regressor>& regressor : regressors) {
    regressor->Save(proto->add_regressors());
  }
  proto->set_intercept(intercept);
  proto->set_noise(noise);
  proto->set_stddev_scale(spread.stddev_scale);
  proto->set_interval_scale(spread.interval_scale);
  proto->set_measuring_noise(measuring_noise);
}

absl::StatusOr<MetricHead> LoadMetricHead(const internal::MetricHead& proto,
                                          size_t columns) {
  MetricHead head;
  head.scale.logarithmic = proto.logarithmic();
  head.scale.centre = proto.centre();
  head.scale.scale = proto.scale();
  head.scale.focus = proto.focus();
  head.scale.width = proto.width();
  head.scale.limit = proto.limit();
  head.uses_score = proto.uses_score();
  for (const internal::Regressor& regressor : proto.regressors()) {
    CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<Regressor> loaded,
                             LoadRegressor(regressor, columns));
    head.regressors.push_back(std::move(loaded));
  }
  head.intercept = proto.intercept();
  head.noise = proto.noise();
  head.measuring_noise = proto.measuring_noise();
  head.spread.stddev_scale = proto.stddev_scale();
  head.spread.interval_scale = proto.interval_scale();
  return head;
}

}  // namespace cubicml
