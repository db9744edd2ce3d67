// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace cubicml {
namespace {

// The ends of a bound belong to it: what is certain to be measured exactly
// there keeps it, whatever rounding has done. In standard deviations of the
// target.
constexpr double kTolerance = 1e-9;

// Probability of a measurement above `end`, or below it with side -1.
double ProbabilityBeyond(const MetricForecast& forecast, double stddev,
                         double end, double side) {
  if (std::isinf(end)) return side * end < 0.0 ? 1.0 : 0.0;
  if (forecast.scale.scale < 0.0) side = -side;
  const double inside = side * (forecast.scale.Forward(end) - forecast.target);
  return 0.5 *
         std::erfc((inside + kTolerance) / (stddev * std::numbers::sqrt2));
}

// `share` of the forecast's spread counts.
double ProbabilityInside(const MetricForecast& forecast, double share,
                         const MetricBound& bound) {
  const double stddev = std::max(share * forecast.target_stddev,
                                 std::numeric_limits<double>::min());
  return std::max(0.0,
                  1.0 - ProbabilityBeyond(forecast, stddev, bound.max, 1.0) -
                      ProbabilityBeyond(forecast, stddev, bound.min, -1.0));
}

template <typename Share>
double Multiply(std::span<const MetricForecast> forecasts,
                std::span<const MetricBound> bounds, Share share) {
  double probability = 1.0;
  for (const MetricBound& bound : bounds) {
    if (bound.metric >= forecasts.size()) continue;
    const MetricForecast& forecast = forecasts[bound.metric];
    // Never measured: a model of what was is finite, or refused at training.
    if (!std::isfinite(forecast.mean)) continue;
    probability *= ProbabilityInside(forecast, share(forecast), bound);
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
