// SPDX-License-Identifier: Apache-2.0

#include "predictor/metric_bound.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace cubicml {
namespace {

// Mean 10; the half of the interval above it is twice as wide.
const std::vector<MetricForecast> kForecasts = {
    {.mean = 10.0, .stddev = 1.0, .lower90 = 9.0, .upper90 = 12.0},
    {.mean = std::nan(""), .lower90 = std::nan(""), .upper90 = std::nan("")}};

double Within(std::vector<MetricBound> bounds) {
  return ProbabilityWithin(kForecasts, bounds);
}

TEST(MetricBoundTest, TheEndsOfTheIntervalLeaveFivePercent) {
  EXPECT_NEAR(Within({{.metric = 0, .max = 12.0}}), 0.95, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .max = 9.0}}), 0.05, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .min = 9.0}}), 0.95, 1e-9);
  EXPECT_NEAR(Within({{.metric = 0, .min = 9.0, .max = 12.0}}), 0.9, 1e-9);
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
  std::vector<MetricForecast> noisy = {
      {.mean = 10.0, .lower90 = 9.0, .upper90 = 11.0, .noiseless_share = 0.5}};
  const MetricBound bound = {.metric = 0, .max = 9.5};
  EXPECT_NEAR(ProbabilityTrulyWithin(noisy, {&bound, 1}), 0.05, 1e-9);
  EXPECT_GT(ProbabilityWithin(noisy, {&bound, 1}), 0.2);
  noisy[0].noiseless_share = 0.0;
  EXPECT_EQ(ProbabilityTrulyWithin(noisy, {&bound, 1}), 0.0);
}

TEST(MetricBoundTest, ACertainForecastIsYesOrNo) {
  const std::vector<MetricForecast> certain = {
      {.mean = 10.0, .lower90 = 10.0, .upper90 = 10.0}};
  const MetricBound above = {.metric = 0, .max = 10.1};
  const MetricBound below = {.metric = 0, .max = 9.9};
  EXPECT_EQ(ProbabilityWithin(certain, {&above, 1}), 1.0);
  EXPECT_EQ(ProbabilityWithin(certain, {&below, 1}), 0.0);
}

}  // namespace
}  // namespace cubicml
