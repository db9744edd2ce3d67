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

}  // namespace

MetricForecast MetricHead::Forecast(double mean, double variance) const {
  const double total = std::sqrt(variance + noise * noise);
  const double half = total * spread.interval_scale;
  const double unit = std::abs(scale.scale);
  MetricForecast forecast;
  forecast.lower90 = scale.Inverse(mean - half);
  forecast.upper90 = scale.Inverse(mean + half);
  if (scale.scale < 0.0) std::swap(forecast.lower90, forecast.upper90);
  const double stddev = total * spread.stddev_scale;
  if (total > 0.0) {
    const double unknown = noise * noise - measuring_noise * measuring_noise;
    forecast.noiseless_share =
        std::sqrt(variance + std::max(unknown, 0.0)) / total;
  }
  forecast.mean = scale.Inverse(mean);
  // Half the distance of the two points that are one deviation away.
  const double step =
      scale.logarithmic ? std::min(stddev, kMaxLogSpread / unit) : stddev;
  forecast.stddev =
      0.5 * std::abs(scale.Inverse(mean + step) - scale.Inverse(mean - step));
  return forecast;
}

void MetricHead::Save(internal::MetricHead* proto) const {
  proto->set_logarithmic(scale.logarithmic);
  proto->set_centre(scale.centre);
  proto->set_scale(scale.scale);
  proto->set_focus(scale.focus);
  proto->set_width(scale.width);
  proto->set_reach(scale.reach);
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
  head.scale.reach = proto.reach();
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
