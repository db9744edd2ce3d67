// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_bound.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "predictor/quality.h"
#include "tests/predictor/normal_forecast.h"

namespace cubicml {
namespace {

// Mean 10; 5 % are below 9.
const std::vector<MetricForecast> kForecasts = {
    NormalForecast(10.0, 1.0 / kQuantile95), NormalForecast(std::nan(""), 1.0)};

double Within(std::vector<MetricBound> bounds) {
  return ProbabilityWithin(kForecasts, bounds);
}

TEST(MetricBoundTest, TheEndsOfTheIntervalLeaveFivePercent) {
  EXPECT_NEAR(Within({{.metric = 0, .max = 11.0}}), 0.95, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .max = 9.0}}), 0.05, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .min = 9.0}}), 0.95, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .min = 9.0, .max = 11.0}}), 0.9, 1e-9);
}

// Where the model is normal, not where the values are.
TEST(MetricBoundTest, ABoundIsSeenOnTheScaleOfTheModel) {
  MetricForecast forecast = NormalForecast(3.0, 1.0);
  forecast.scale = {.logarithmic = true, .centre = 1.0, .scale = 0.5};
  forecast.scale.focus = 1.0;
  forecast.scale.width = 0.01;
  forecast.scale.limit = 10.0;
  const std::vector<MetricForecast> forecasts = {forecast};
  const MetricBound bound = {.metric = 0, .max = forecast.scale.Inverse(1.0)};
  EXPECT_NEAR(ProbabilityWithin(forecasts, {&bound, 1}), 0.02275, 1e-5);
  const MetricBound impossible = {.metric = 0, .max = -1.0};
  EXPECT_EQ(ProbabilityWithin(forecasts, {&impossible, 1}), 0.0);
  const MetricBound certain = {.metric = 0, .min = -1.0};
  EXPECT_EQ(ProbabilityWithin(forecasts, {&certain, 1}), 1.0);
}

TEST(MetricBoundTest, AScaleMayPointDownwards) {
  MetricForecast forecast = NormalForecast(0.0, 1.0);
  forecast.scale.scale = -2.0;
  const std::vector<MetricForecast> forecasts = {forecast};
  const MetricBound bound = {.metric = 0, .max = 2.0};
  EXPECT_NEAR(ProbabilityWithin(forecasts, {&bound, 1}), 0.84134, 1e-5);
}

TEST(MetricBoundTest, BoundsMultiply) {
  EXPECT_NEAR(Within({{.metric = 0, .max = 10.0}, {.metric = 0, .max = 10.0}}),
              0.25, 1e-9);
}

TEST(MetricBoundTest, WhatIsNotKnownIsKept) {
  EXPECT_EQ(Within({}), 1.0);
  EXPECT_EQ(Within({{.metric = 1, .max = 1.0}}), 1.0);
  EXPECT_EQ(Within({{.metric = 7, .max = 1.0}}), 1.0);
}

TEST(MetricBoundTest, NoiseDoesNotMakeABrokenBoundKept) {
  std::vector<MetricForecast> noisy = {NormalForecast(10.0, 1.0 / kQuantile95)};
  noisy[0].noiseless_share = 0.5;
  const MetricBound bound = {.metric = 0, .max = 9.5};
  EXPECT_NEAR(ProbabilityTrulyWithin(noisy, {&bound, 1}), 0.05, 1e-9);
  EXPECT_GT(ProbabilityWithin(noisy, {&bound, 1}), 0.2);
  noisy[0].noiseless_share = 0.0;
  EXPECT_EQ(ProbabilityTrulyWithin(noisy, {&bound, 1}), 0.0);
}

TEST(MetricBoundTest, ACertainForecastIsYesOrNo) {
  const std::vector<MetricForecast> certain = {NormalForecast(10.0, 0.0)};
  const MetricBound above = {.metric = 0, .max = 10.1};
  const MetricBound below = {.metric = 0, .max = 9.9};
  EXPECT_EQ(ProbabilityWithin(certain, {&above, 1}), 1.0);
  EXPECT_EQ(ProbabilityWithin(certain, {&below, 1}), 0.0);
}

TEST(MetricBoundTest, BothEndsAreAllowedWhateverRoundingHasDone) {
  for (const double scale : {2.0, -2.0}) {
    MetricForecast forecast = NormalForecast(0.0, 0.0);
    forecast.scale.scale = scale;
    for (const double rounding : {-1e-15, 0.0, 1e-15}) {
      forecast.target = rounding;
      const std::vector<MetricForecast> certain = {forecast};
      const MetricBound most = {.metric = 0, .max = 0.0};
      const MetricBound least = {.metric = 0, .min = 0.0};
      EXPECT_EQ(ProbabilityWithin(certain, {&most, 1}), 1.0);
      EXPECT_EQ(ProbabilityWithin(certain, {&least, 1}), 1.0);
    }
  }
}

}  // namespace
}  // namespace cubicml
