// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cubicml {
namespace {

// Of a standard normal distribution.
constexpr double kQuantile95 = 1.6448536269514722;

// Probability of a measurement below `value`. Each side of the mean is as wide
// as its half of the 90 % interval: those of logarithmic metrics differ.
double ProbabilityBelow(const MetricForecast& forecast, double share,
                        double value) {
  const double half = value < forecast.mean ? forecast.mean - forecast.lower90
                                            : forecast.upper90 - forecast.mean;
  const double stddev = std::max(share * half / kQuantile95, 1e-12);
  const double z = (value - forecast.mean) / stddev;
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
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
