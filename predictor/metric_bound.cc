// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cubicml {
namespace {

// Probability of a measurement below `value`.
double ProbabilityBelow(const MetricForecast& forecast, double share,
                        double value) {
  const double stddev = std::max(share * forecast.target_stddev, 1e-12);
  const double z = (forecast.scale.Forward(value) - forecast.target) / stddev;
  return 0.5 *
         std::erfc((forecast.scale.scale > 0.0 ? -z : z) / std::numbers::sqrt2);
}

// `share` of a forecast is that of its spread that counts.
template <typename Share>
double Multiply(std::span<const MetricForecast> forecasts,
                std::span<const MetricBound> bounds, Share share) {
  double probability = 1.0;
  for (const MetricBound& bound : bounds) {
    if (bound.metric >= forecasts.size()) continue;
    const MetricForecast& forecast = forecasts[bound.metric];
    // Never measured: a model of what was is finite, or refused at training.
    if (!std::isfinite(forecast.mean)) continue;
    const double s = share(forecast);
    probability *= std::max(0.0, ProbabilityBelow(forecast, s, bound.max) -
                                     ProbabilityBelow(forecast, s, bound.min));
  }
  return probability;
}

}  // namespace

double ProbabilityWithin(std::span<const MetricForecast> forecasts,
                         std::span<const MetricBound> bounds) {
  return Multiply(forecasts, bounds, [](const MetricForecast&) { return 1.0; });
}

double ProbabilityTrulyWithin(std::span<const MetricForecast> forecasts,
                              std::span<const MetricBound> bounds) {
  return Multiply(forecasts, bounds, [](const MetricForecast& forecast) {
    return forecast.noiseless_share;
  });
}

}  // namespace cubicml
