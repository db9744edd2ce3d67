// SPDX-License-Identifier: Apache-2.0
//
// A forecast that no model made.

#ifndef CUBICML_TESTS_PREDICTOR_NORMAL_FORECAST_H_
#define CUBICML_TESTS_PREDICTOR_NORMAL_FORECAST_H_

#include "predictor/predictor.h"
#include "predictor/quality.h"

namespace cubicml {

// A new measurement is normal around `mean`.
inline MetricForecast NormalForecast(double mean, double stddev) {
  MetricForecast forecast;
  forecast.mean = mean;
  forecast.stddev = stddev;
  forecast.lower90 = mean - kQuantile95 * stddev;
  forecast.upper90 = mean + kQuantile95 * stddev;
  forecast.target = mean;
  forecast.target_stddev = stddev;
  return forecast;
}

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_NORMAL_FORECAST_H_
