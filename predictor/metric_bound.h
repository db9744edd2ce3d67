// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a metric, and how likely a configuration is to keep it.

#ifndef CUBICML_PREDICTOR_METRIC_BOUND_H_
#define CUBICML_PREDICTOR_METRIC_BOUND_H_

#include <cstddef>
#include <limits>
#include <span>

#include "predictor/predictor.h"

namespace cubicml {

// Both ends are allowed.
struct MetricBound {
  size_t metric = 0;  // as Dataset.metrics
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// Probability that a new measurement keeps all of `bounds`, which are taken for
// independent. A metric that was never measured keeps its own.
double ProbabilityWithin(std::span<const MetricForecast> forecasts,
                         std::span<const MetricBound> bounds);
// That what is measured would keep them but for the noise of measuring: a lucky
// measurement of what breaks a bound is nothing to look for.
double ProbabilityTrulyWithin(std::span<const MetricForecast> forecasts,
                              std::span<const MetricBound> bounds);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_METRIC_BOUND_H_
