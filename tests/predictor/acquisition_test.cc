// SPDX-License-Identifier: Apache-2.0

#include "predictor/acquisition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/predictor/normal_forecast.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(LogExpectedImprovementTest, AgreesWithTheTextbook) {
  // At the best itself: stddev / sqrt(2 pi).
  EXPECT_NEAR(LogExpectedImprovement(1.0, 0.5, 1.0),
              std::log(0.5 / std::sqrt(2.0 * std::numbers::pi)), 1e-12);
  // Far above it: the difference.
  EXPECT_NEAR(LogExpectedImprovement(10.0, 0.1, 1.0), std::log(9.0), 1e-9);
  // One standard deviation below: phi(1) - Phi(-1).
  EXPECT_NEAR(LogExpectedImprovement(0.0, 1.0, 1.0),
              std::log(0.24197072451914337 - 0.15865525393145707), 1e-12);
}

TEST(LogExpectedImprovementTest, FallsSmoothlyWhereTheExpectationUnderflows) {
  double before = LogExpectedImprovement(0.0, 1.0, 0.0);
  for (double best = 0.01; best < 60.0; best += 0.01) {
    const double now = LogExpectedImprovement(0.0, 1.0, best);
    ASSERT_TRUE(std::isfinite(now)) << best;
    ASSERT_LT(now, before) << best;
    // Its slope is about -best: no jump where the formula changes.
    ASSERT_GT(now, before - 0.011 * (best + 2.0)) << best;
    before = now;
  }
}

TEST(LogExpectedImprovementTest, IsFiniteWithoutSpread) {
  EXPECT_TRUE(std::isfinite(LogExpectedImprovement(0.0, 0.0, 1.0)));
  EXPECT_NEAR(LogExpectedImprovement(2.0, 0.0, 1.0), 0.0, 1e-6);
}

v1::Study GridStudy() {
  return StudyFromText(
      "parameters { name: 'a' integer { min: 1 max: 9 } }"
      "parameters { name: 'b' integer { min: 1 max: 9 } }");
}

class AcquisitionTest : public ::testing::Test {
 protected:
  PointScore ScoreOf(const SearchProblem& problem, const Point& point) const {
    const auto acquisition = Acquisition::Create(problem);
    EXPECT_THAT(acquisition.status(), IsOk());
    const auto scores = acquisition->Score(std::vector<Point>{point});
    EXPECT_THAT(scores.status(), IsOk());
    return scores->front();
  }
  Landscape landscape_{GridStudy(), 1, 0.5};
};

TEST_F(AcquisitionTest, NeedsAPredictor) {
  SearchProblem problem = landscape_.Problem();
  problem.predictor = nullptr;
  EXPECT_THAT(Acquisition::Create(problem),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(AcquisitionTest, MeasuresAgainstWhatTheModelExpectsOfTheBest) {
  SearchProblem problem = landscape_.Problem();
  // The measurement itself, in its own unit, does not matter.
  problem.observations.push_back({{3.0, 3.0}, true, 1e9});
  const double best = landscape_.ScoreOf({3.0, 3.0});
  EXPECT_NEAR(ScoreOf(problem, {5.0, 5.0}).acquisition,
              LogExpectedImprovement(landscape_.ScoreOf({5.0, 5.0}),
                                     landscape_.stddev, best),
              1e-9);
}

TEST_F(AcquisitionTest, CountsInfeasibleObservationsForNothing) {
  SearchProblem problem = landscape_.Problem();
  problem.observations.push_back({{3.0, 3.0}, true, 1.0});
  const double before = ScoreOf(problem, {5.0, 5.0}).acquisition;
  problem.observations.push_back({{5.0, 6.0}, false, 2.0});
  EXPECT_EQ(ScoreOf(problem, {5.0, 5.0}).acquisition, before);
}

TEST_F(AcquisitionTest, WhatMissesABoundIsWorthLittleHoweverFast) {
  // The larger `a` the faster, and the worse the second metric.
  const FakePredictor predictor([](const float* features) {
    const double a = static_cast<double>(features[0]);
    Forecast forecast;
    forecast.score = a;
    forecast.score_stddev = 0.1;
    const double loss = 2.0 + a;
    forecast.metrics = {NormalForecast(a, 0.1), NormalForecast(loss, 0.1)};
    return forecast;
  });
  SearchProblem problem = landscape_.Problem();
  problem.predictor = &predictor;
  const double unbounded = ScoreOf(problem, {9.0, 1.0}).acquisition;
  EXPECT_GT(unbounded, ScoreOf(problem, {5.0, 1.0}).acquisition);
  const double limit = 2.0 + ScoreOf(problem, {5.0, 1.0}).mean + 0.5;
  problem.bounds.push_back({.metric = 1, .max = limit});
  EXPECT_LT(ScoreOf(problem, {9.0, 1.0}).acquisition,
            ScoreOf(problem, {5.0, 1.0}).acquisition);
  EXPECT_LT(ScoreOf(problem, {9.0, 1.0}).log_feasible, std::log(0.01));
}

TEST_F(AcquisitionTest, TheCostDoesNotGrowWithTheHistory) {
  size_t scored = 0;
  const FakePredictor counting([&scored](const float*) {
    ++scored;
    return Forecast();
  });
  for (const bool maximize : {true, false}) {
    SearchProblem problem = landscape_.Problem();
    problem.predictor = &counting;
    problem.maximize = maximize;
    for (int i = 0; i < 5000; ++i) {
      problem.observations.push_back({{3.0, 3.0}, true, 1.0 + i});
    }
    problem.pending.push_back({4.0, 4.0});
    scored = 0;
    EXPECT_THAT(Acquisition::Create(problem).status(), IsOk());
    EXPECT_LE(scored, 257u);
  }
}

TEST_F(AcquisitionTest, LooksAtTheBestMeasurementsOfALongHistory) {
  for (const bool maximize : {true, false}) {
    SearchProblem problem = landscape_.Problem();
    problem.maximize = maximize;
    const double sign = maximize ? 1.0 : -1.0;
    for (int i = 0; i < 1000; ++i) {
      problem.observations.push_back({{1.0, 1.0}, true, sign * (i % 10)});
    }
    problem.observations[500] = {{3.0, 3.0}, true, sign * 100.0};
    const double best = std::max(landscape_.ScoreOf({1.0, 1.0}),
                                 landscape_.ScoreOf({3.0, 3.0}));
    EXPECT_NEAR(ScoreOf(problem, {5.0, 5.0}).acquisition,
                LogExpectedImprovement(landscape_.ScoreOf({5.0, 5.0}),
                                       landscape_.stddev, best),
                1e-9);
  }
}

TEST_F(AcquisitionTest, TakesTheProbabilityOfFailureIntoAccount) {
  SearchProblem problem = landscape_.Problem();
  problem.observations.push_back({{3.0, 3.0}, true, 1.0});
  const double before = ScoreOf(problem, {5.0, 5.0}).acquisition;
  landscape_.feasible = [](const Point&) { return 0.25; };
  EXPECT_NEAR(ScoreOf(problem, {5.0, 5.0}).acquisition, before + std::log(0.25),
              1e-9);
  landscape_.feasible = [](const Point&) { return 0.0; };
  EXPECT_TRUE(std::isfinite(ScoreOf(problem, {5.0, 5.0}).acquisition));
}

TEST_F(AcquisitionTest, IsLessSureOfNothingNearARunningTrial) {
  SearchProblem problem = landscape_.Problem();
  problem.pending.push_back({5.0, 5.0});
  EXPECT_NEAR(ScoreOf(problem, {5.0, 5.0}).stddev, 0.0, 1e-9);
  const double near = ScoreOf(problem, {5.0, 6.0}).stddev;
  const double far = ScoreOf(problem, {1.0, 1.0}).stddev;
  EXPECT_LT(near, 0.6 * landscape_.stddev);
  EXPECT_GT(far, 0.8 * landscape_.stddev);
}

TEST_F(AcquisitionTest, WhatWillLikelyFailIsNothingToImproveOn) {
  // The better of the two is the one that may fail.
  Point good = {5.0, 5.0};
  Point poor = {2.0, 8.0};
  if (landscape_.ScoreOf(good) < landscape_.ScoreOf(poor))
    std::swap(good, poor);
  const Point far = {9.0, 1.0};
  double works = 0.3;
  landscape_.feasible = [&](const Point& point) {
    return point == good ? works : 1.0;
  };
  SearchProblem problem = landscape_.Problem();
  problem.observations.push_back({poor, true, 1.0});
  const double before = ScoreOf(problem, far).acquisition;
  auto acquisition = Acquisition::Create(problem);
  ASSERT_THAT(acquisition.status(), IsOk());
  acquisition->Believe(good, ScoreOf(problem, good));
  // Uncertainty near it shrinks all the same, so that is put back.
  PointScore score = ScoreOf(problem, far);
  acquisition->Rescore(acquisition->distance().Locate(far), &score);
  EXPECT_NEAR(score.acquisition,
              LogExpectedImprovement(score.mean, score.stddev,
                                     landscape_.ScoreOf(poor)),
              1e-9);
  problem.pending.push_back(good);
  score = ScoreOf(problem, far);
  EXPECT_NEAR(score.acquisition,
              LogExpectedImprovement(score.mean, score.stddev,
                                     landscape_.ScoreOf(poor)),
              1e-9);
  works = 0.9;
  EXPECT_LT(ScoreOf(problem, far).acquisition, before - 1e-6);
  EXPECT_LT(ScoreOf(problem, far).acquisition, score.acquisition - 1e-6);
}

TEST_F(AcquisitionTest, RanksByPromiseWhereNothingWorksYet) {
  const SearchProblem problem = landscape_.Problem();
  const PointScore score = ScoreOf(problem, {5.0, 5.0});
  EXPECT_NEAR(score.acquisition, score.mean + score.stddev, 1e-12);
}

}  // namespace
}  // namespace cubicml
