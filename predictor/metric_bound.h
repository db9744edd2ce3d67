// SPDX-License-Identifier: Apache-2.0
//
// How likely a configuration is to keep what is asked of its metrics.

#ifndef CUBICML_PREDICTOR_METRIC_BOUND_H_
#define CUBICML_PREDICTOR_METRIC_BOUND_H_

#include <span>

#include "predictor/dataset.h"
#include "predictor/predictor.h"

namespace cubicml {

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
