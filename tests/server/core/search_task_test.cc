// SPDX-License-Identifier: Apache-2.0

#include "server/core/search_task.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/predictor/normal_forecast.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(FormatPredictionTest, LeavesOutWhatWasNeverMeasured) {
  v1::Study study = BoundedStudy();  // qps, loss, memory
  study.set_name("studies/a");
  const auto definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Forecast forecast;
  forecast.metrics = {NormalForecast(5.0, 1.0), NormalForecast(kNan, kNan),
                      NormalForecast(7.0, 1.0)};
  forecast.feasible_probability = 0.5;
  const v1::Prediction prediction =
      FormatPrediction(**definition, forecast, {});
  EXPECT_EQ(prediction.metrics_size(), 2);
  EXPECT_NEAR(prediction.metrics().at("qps").upper90(), 6.645, 1e-3);
  EXPECT_EQ(prediction.metrics().at("memory").mean(), 7.0);
  EXPECT_EQ(prediction.feasible_probability(), 0.5);
}

TEST(FormatPredictionTest, WorkingIsToRunAndToKeepTheBounds) {
  v1::Study study = BoundedStudy();  // qps, loss, memory
  study.set_name("studies/a");
  const auto definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  Forecast forecast;
  forecast.metrics = {NormalForecast(5.0, 1.0), NormalForecast(2.0, 1.0),
                      NormalForecast(7.0, 1.0)};
  forecast.feasible_probability = 0.5;
  const MetricBound bound = {.metric = 1, .max = 2.0};
  EXPECT_NEAR(FormatPrediction(**definition, forecast, {&bound, 1})
                  .feasible_probability(),
              0.25, 1e-8);
}

}  // namespace
}  // namespace cubicml
