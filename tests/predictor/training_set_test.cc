// SPDX-License-Identifier: Apache-2.0

#include "predictor/training_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "predictor/dataset.h"
#include "tests/predictor/trainer_battery.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(CheckDataset, NamesTheFieldThatIsWrong) {
  Dataset dataset = MakeSynthetic({.rows = 10});
  EXPECT_THAT(CheckDataset(dataset), IsOk());
  dataset.rows[3].weight = 0.0;
  EXPECT_THAT(CheckDataset(dataset),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rows[3].weight")));
  dataset.rows[3].weight = 1.0;
  dataset.rows[3].metrics = {std::numeric_limits<double>::infinity(), 1.0};
  EXPECT_THAT(CheckDataset(dataset),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rows[3].metrics")));
  dataset.rows.pop_back();
  EXPECT_THAT(CheckDataset(dataset),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("features")));
}

TEST(TargetScale, IsLogarithmicOnlyForPositiveValues) {
  Rng rng(1);
  Dataset dataset = MakeSynthetic({});
  auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_TRUE(SelectMetric(*set, 0, 1000, &rng).scale.logarithmic);
  for (DatasetRow& row : dataset.rows) {
    if (row.feasible) {
      row.metrics[0] = 0.0;
      break;
    }
  }
  set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_FALSE(SelectMetric(*set, 0, 1000, &rng).scale.logarithmic);
}

TEST(TargetScale, ForwardAndInverseUndoEachOther) {
  const TargetScale logarithmic{true, 2.0, 0.5};
  EXPECT_NEAR(logarithmic.Inverse(logarithmic.Forward(7.5)), 7.5, 1e-12);
  const TargetScale linear{false, -1.0, -3.0};
  EXPECT_NEAR(linear.Inverse(linear.Forward(-7.5)), -7.5, 1e-12);
  EXPECT_TRUE(std::isfinite(logarithmic.Inverse(1e9)));
}

TEST(TargetScale, AFocusIsUndoneAndStaysMonotoneBeyondItsLimit) {
  TargetScale scale{true, 0.5, 2.0};
  scale.focus = std::log(0.6);
  scale.width = 0.01;
  scale.limit = 5.0;  // at 74.2 widths, 1.26
  double before = -HUGE_VAL;
  for (const double value : {0.1, 0.5, 0.599, 0.6, 0.61, 1.2, 1.3, 6.0, 1e6}) {
    const double target = scale.Forward(value);
    EXPECT_GT(target, before);
    EXPECT_NEAR(scale.Inverse(target), value, 1e-9 * value);
    before = target;
  }
  EXPECT_TRUE(std::isfinite(scale.Inverse(1e9)));
  EXPECT_EQ(scale.Forward(-1.0), -HUGE_VAL);
  // Beyond the limit a step is a factor, as on the logarithm itself.
  const double far = scale.Forward(2.0);
  EXPECT_NEAR(scale.Inverse(far + 0.1) / scale.Inverse(far),
              scale.Inverse(far + 0.2) / scale.Inverse(far + 0.1), 1e-9);
}

// Losses of which one diverged, with a bound among the others.
Dataset MakeDiverged() {
  Dataset dataset = MakeSynthetic({.rows = 30});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    DatasetRow& row = dataset.rows[i];
    row.feasible = true;
    const double loss = 0.58 + 0.002 * static_cast<double>(i);
    row.metrics = {1.0 + static_cast<double>(i), i == 7 ? 60.0 : loss};
  }
  return dataset;
}

double Spread(const TargetRows& rows, size_t a, size_t b) {
  return std::abs(rows.targets[a] - rows.targets[b]);
}

TEST(SelectMetric, WhatIsFarFromABoundDoesNotHideWhatIsNear) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_LT(Spread(SelectMetric(*set, 1, 1000, &rng), 10, 20), 0.1);
  dataset.bounds = {{.metric = 1, .max = 0.61}};
  set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  const TargetRows rows = SelectMetric(*set, 1, 1000, &rng);
  EXPECT_GT(Spread(rows, 10, 20), 0.5);
  // Still in order.
  EXPECT_GT(rows.targets[7], rows.targets[29]);
  EXPECT_NEAR(rows.scale.Inverse(rows.targets[7]), 60.0, 1e-9);
}

TEST(SelectMetric, BoundsOfAllContextsCountInFull) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  dataset.bounds = {{.metric = 1, .max = 0.59}, {.metric = 1, .max = 0.63}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  const TargetScale scale = SelectMetric(*set, 1, 1000, &rng).scale;
  for (const double bound : {0.59, 0.63}) {
    EXPECT_LE(std::abs(std::log(bound) - scale.focus), scale.width);
  }
}

// As the number of failures of a job, of which most have none.
TEST(SelectMetric, WhatIsAtABoundDoesNotHideWhatIsNotQuite) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    dataset.rows[i].metrics[1] = i < 20 ? 0.0 : 1.0;
  }
  dataset.rows[7].metrics[1] = 1e6;
  dataset.bounds = {{.metric = 1, .max = 0.0}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_GT(Spread(SelectMetric(*set, 1, 1000, &rng), 0, 25), 0.2);
}

// As the noise of a metric that is at its bound.
TEST(SelectMetric, JitterAtABoundDoesNotFillTheScale) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    const double jitter = i % 2 == 0 ? 1e-9 : -1e-9;
    dataset.rows[i].metrics[1] =
        i < 10 ? 50.0 + jitter : 20.0 + static_cast<double>(i);
  }
  dataset.bounds = {{.metric = 1, .max = 50.0}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  const TargetRows rows = SelectMetric(*set, 1, 1000, &rng);
  EXPECT_LT(Spread(rows, 0, 1), 1e-3);
  EXPECT_GT(Spread(rows, 12, 28), 0.1);
}

TEST(SelectMetric, ContextsOfOtherLevelsCountInFull) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    dataset.rows[i].group = static_cast<int>(i % 2);
    if (i % 2 == 1) dataset.rows[i].metrics[1] *= 10.0;
  }
  dataset.bounds = {{.metric = 1, .max = 0.61}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_GE(SelectMetric(*set, 1, 1000, &rng).scale.width, std::log(9.0));
}

TEST(SelectMetric, ABoundOfASecondObjectiveCountsToo) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  dataset.metrics[1].objective = true;
  dataset.bounds = {{.metric = 1, .max = 0.61}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_GT(SelectMetric(*set, 1, 1000, &rng).scale.width, 0.0);
}

// 600 losses from 0.0 to 1.0, in no order, of which 100 are at least 0.9.
Dataset MakeManyLosses() {
  Dataset dataset = MakeSynthetic({.rows = 600});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    DatasetRow& row = dataset.rows[i];
    row.feasible = true;
    const double share = static_cast<double>(i * 7 % 600) / 600.0;
    row.metrics = {1.0, share < 5.0 / 6.0 ? 0.9 * share : 0.9 + 0.1 * share};
  }
  return dataset;
}

// Of the sample of a metric, how many values are in [low, high].
size_t CountSampled(const Dataset& dataset, double low, double high) {
  Rng rng(1);
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  EXPECT_THAT(set, IsOk());
  const TargetRows rows = SelectMetric(*set, 1, 120, &rng);
  EXPECT_EQ(rows.targets.size(), 120U);
  return static_cast<size_t>(
      std::count_if(rows.targets.begin(), rows.targets.end(), [&](double y) {
        const double value = rows.scale.Inverse(y);
        return low <= value && value <= high;
      }));
}

TEST(SelectMetric, ASampleHasNotMoreOfTheLargestThanThereAre) {
  EXPECT_LT(CountSampled(MakeManyLosses(), 0.9, 1.0), 35U);
}

TEST(SelectMetric, ASampleKeepsWhatIsNearestToABound) {
  Dataset dataset = MakeManyLosses();
  dataset.bounds = {{.metric = 1, .max = 0.5}};
  // 27 are so near, and a quarter of the sample is 30.
  EXPECT_GE(CountSampled(dataset, 0.48, 0.52), 26U);
  EXPECT_LT(CountSampled(dataset, 0.9, 1.0), 30U);
}

TEST(SelectMetric, ABoundThatIsNoLogarithmIsIgnored) {
  Rng rng(1);
  Dataset dataset = MakeDiverged();
  dataset.bounds = {{.metric = 1, .min = -1.0}, {.metric = 0, .max = 2.0}};
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(SelectMetric(*set, 1, 1000, &rng).scale.width, 0.0);
  // What is to be as large as can be is not learnt at a bound.
  EXPECT_EQ(SelectMetric(*set, 0, 1000, &rng).scale.width, 0.0);
}

TEST(MakeTrainingSet, ScalesColumnsThatAreTooLarge) {
  Rng rng(1);
  Dataset dataset = MakeSynthetic({.rows = 30});
  for (size_t i = 0; i < 30; ++i) dataset.features.values[4 * i] *= 1000.0F;
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  for (const float value : set->features.values) {
    EXPECT_LE(std::abs(value), 1.0F);
  }
}

TEST(MakeTrainingSet, EqualConfigurationsShareAFold) {
  Rng rng(1);
  Dataset dataset = MakeSynthetic({.rows = 30});
  for (size_t c = 0; c < 4; ++c) {
    dataset.features.values[4 * 17 + c] = dataset.features.values[c];
  }
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(set->folds[0], set->folds[17]);
}

TEST(MakeTrainingSet, ASampleKeepsTheBestAndTheLast) {
  Rng rng(1);
  const Dataset dataset = MakeSynthetic({.rows = 2000});
  double best = 0.0;
  for (const DatasetRow& row : dataset.rows) {
    if (row.feasible) best = std::max(best, row.metrics[0]);
  }
  const auto set = MakeTrainingSet(dataset, 100, &rng);
  ASSERT_THAT(set, IsOk());
  ASSERT_EQ(set->rows.size(), 100u);
  EXPECT_TRUE(std::any_of(set->rows.begin(), set->rows.end(),
                          [&](const DatasetRow& row) {
                            return row.feasible && row.metrics[0] == best;
                          }));
  EXPECT_EQ(set->rows.back().metrics, dataset.rows.back().metrics);
}

// Failures are the rule among the first half, and the best are never among
// them.
TEST(SelectFeasibility, HasAsManyFailuresAsThereAre) {
  Dataset dataset = MakeSynthetic({.rows = 4000});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    DatasetRow& row = dataset.rows[i];
    row.feasible = i % 10 >= (i < 2000 ? 6 : 2);
    if (row.feasible) row.metrics = {1.0 + static_cast<double>(i), 40.0};
  }
  Rng rng(1);
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  const auto share = [](const TargetRows& rows) {
    double failures = 0.0;
    for (const double target : rows.targets) failures += target < 0.0;
    return failures / static_cast<double>(rows.targets.size());
  };
  // A quarter are the last, of which a fifth fail; of all it is two fifths.
  EXPECT_NEAR(share(SelectFeasibility(*set, 1000, &rng)),
              0.25 * 0.2 + 0.75 * 0.4, 0.06);
  // Again so, of a sample in which the last are more.
  EXPECT_NEAR(share(SelectFeasibility(*set, 200, &rng)),
              0.25 * 0.2 + 0.75 * 0.35, 0.1);
}

TEST(SelectMetric, LeavesOutRowsWithoutIt) {
  Rng rng(1);
  Dataset dataset = MakeSynthetic({.rows = 30});
  size_t measured = 0;
  for (DatasetRow& row : dataset.rows) {
    if (!row.feasible) continue;
    if (measured++ < 4) {
      row.metrics[1] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  const auto set = MakeTrainingSet(dataset, 1000, &rng);
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(SelectMetric(*set, 0, 1000, &rng).targets.size(), measured);
  EXPECT_EQ(SelectMetric(*set, 1, 1000, &rng).targets.size(), measured - 4);
  EXPECT_EQ(SelectFeasibility(*set, 1000, &rng).targets.size(), 30u);
}

}  // namespace
}  // namespace cubicml
