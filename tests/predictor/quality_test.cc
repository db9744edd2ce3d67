// SPDX-License-Identifier: Apache-2.0

#include "predictor/quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "base/rng.h"

namespace cubicml {
namespace {

using Values = std::vector<double>;
using Groups = std::vector<int>;

TEST(KendallTau, IsOneForTheSameOrderAndMinusOneForTheOpposite) {
  const Values measured = {1.0, 2.0, 3.0, 4.0};
  const Groups one(4, 0);
  EXPECT_EQ(KendallTau(Values{10.0, 20.0, 30.0, 40.0}, measured, one), 1.0);
  EXPECT_EQ(KendallTau(Values{4.0, 3.0, 2.0, 1.0}, measured, one), -1.0);
}

TEST(KendallTau, CountsPairsOfOneGroupOnly) {
  // Between the groups the order is wrong, within them right.
  EXPECT_EQ(KendallTau(Values{1.0, 2.0, 11.0, 12.0}, Values{8.0, 9.0, 1.0, 2.0},
                       Groups{0, 0, 1, 1}),
            1.0);
}

TEST(KendallTau, APairThatThePredictionTiesCountsAsNeither) {
  EXPECT_EQ(KendallTau(Values{1.0, 1.0}, Values{1.0, 2.0}, Groups{0, 0}), 0.0);
}

TEST(KendallTau, IsUnsetWithoutPairs) {
  EXPECT_EQ(KendallTau(Values{}, Values{}, Groups{}), std::nullopt);
  EXPECT_EQ(KendallTau(Values{1.0, 2.0}, Values{3.0, 3.0}, Groups{0, 0}),
            std::nullopt);
  EXPECT_EQ(KendallTau(Values{1.0, 2.0}, Values{3.0, 4.0}, Groups{0, 1}),
            std::nullopt);
}

TEST(AreaUnderRoc, IsTheShareOfPairsInOrder) {
  EXPECT_EQ(AreaUnderRoc({1.0, 2.0, 3.0, 4.0}, {false, false, true, true}),
            1.0);
  EXPECT_EQ(AreaUnderRoc({1.0, 2.0, 3.0, 4.0}, {false, true, false, true}),
            0.75);
  EXPECT_EQ(AreaUnderRoc({5.0, 5.0}, {false, true}), 0.5);
  EXPECT_EQ(AreaUnderRoc({5.0, 6.0}, {true, true}), std::nullopt);
}

TEST(ConformalQuantile, TakesTheRankOfOneMoreRow) {
  Values values;
  for (int i = 1; i <= 19; ++i) values.push_back(i);
  EXPECT_EQ(ConformalQuantile(values, 0.9), 18.0);  // ceil(20 * 0.9)
  EXPECT_EQ(ConformalQuantile({3.0, 1.0}, 0.9), 3.0);
}

TEST(CalibrateSpread, LeavesTrueSpreadsAlone) {
  Rng rng(1);
  Values residuals;
  for (int i = 0; i < 20'000; ++i) residuals.push_back(rng.Normal());
  const SpreadCalibration calibration = CalibrateSpread(residuals);
  EXPECT_NEAR(calibration.stddev_scale, 1.0, 0.02);
  EXPECT_NEAR(calibration.interval_scale, 1.645, 0.03);
}

TEST(CalibrateSpread, WidensSpreadsThatAreTooSmall) {
  Rng rng(1);
  Values residuals;
  for (int i = 0; i < 2000; ++i) residuals.push_back(3.0 * rng.Normal());
  const SpreadCalibration calibration = CalibrateSpread(residuals);
  EXPECT_NEAR(calibration.stddev_scale, 3.0, 0.15);
  EXPECT_NEAR(calibration.interval_scale, 4.93, 0.3);
}

TEST(CalibrateSpread, KnowsTheNormalDistributionWithoutRows) {
  EXPECT_EQ(CalibrateSpread({}).stddev_scale, 1.0);
  EXPECT_NEAR(CalibrateSpread({0.1}).interval_scale, 1.4, 0.2);
}

TEST(HeldOutCoverage, IsNinetyPercentOfExchangeableRows) {
  Rng rng(2);
  Values residuals;
  Groups folds;
  for (int i = 0; i < 2000; ++i) {
    residuals.push_back(5.0 * rng.Normal());
    folds.push_back(i % 5);
  }
  EXPECT_NEAR(*HeldOutCoverage(residuals, folds, 5), 0.9, 0.03);
  EXPECT_EQ(HeldOutCoverage({1.0, 2.0}, Groups{0, 1}, 2), std::nullopt);
}

}  // namespace
}  // namespace cubicml
