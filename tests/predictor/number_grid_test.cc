// SPDX-License-Identifier: Apache-2.0

#include "predictor/number_grid.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(NumberGridTest, DecimalStepsGiveTheDoublesThatOneWrites) {
  EXPECT_THAT(MakeGrid(0, 0.3, 0.1), ElementsAre(0.0, 0.1, 0.2, 0.3));
  const std::vector<double> fine = MakeGrid(-1, 1, 0.001);
  ASSERT_THAT(fine, SizeIs(2001));
  EXPECT_EQ(fine[1000], 0.0);
  EXPECT_FALSE(std::signbit(fine[1000]));
  EXPECT_EQ(fine[1007], 0.007);
  EXPECT_EQ(fine[1999], 0.999);
}

TEST(NumberGridTest, TheLastValueDoesNotExceedTheBound) {
  EXPECT_THAT(MakeGrid(0, 1, 0.3), ElementsAre(0.0, 0.3, 0.6, 0.9));
  EXPECT_THAT(MakeGrid(5, 5, 1), ElementsAre(5.0));
  EXPECT_THAT(MakeGrid(0, 0.5, 2), ElementsAre(0.0));
  for (int n = 1; n < 200; ++n) {
    const double step = 1.0 / n;  // no short decimal
    const std::vector<double> values = MakeGrid(0, 1, step);
    ASSERT_THAT(values, SizeIs(static_cast<size_t>(n) + 1)) << n;
    EXPECT_LE(values.back(), 1.0);
    EXPECT_NEAR(values.back(), 1.0, 1e-12);
  }
}

TEST(NumberGridTest, CountsWhatCannotBeMade) {
  EXPECT_EQ(CountGridValues(0, 1, 0.001), 1001);
  EXPECT_GT(CountGridValues(-1e308, 1e308, 1e-300), 1e300);
}

TEST(NumberGridTest, EvenValuesReachBothEnds) {
  EXPECT_THAT(MakeEvenValues(0, 1, false, 5),
              ElementsAre(0.0, 0.25, 0.5, 0.75, 1.0));
  const std::vector<double> logs = MakeEvenValues(1e-5, 1e-1, true, 5);
  ASSERT_THAT(logs, SizeIs(5));
  EXPECT_EQ(logs.front(), 1e-5);
  EXPECT_EQ(logs.back(), 1e-1);
  EXPECT_NEAR(logs[2], 1e-3, 1e-15);
  EXPECT_THAT(MakeEvenValues(2, 2, false, 1025), ElementsAre(2.0));
  EXPECT_THAT(MakeEvenValues(1, std::nextafter(1.0, 2.0), false, 1025),
              SizeIs(2));
  const std::vector<double> wide = MakeEvenValues(-1e308, 1e308, false, 3);
  EXPECT_THAT(wide, ElementsAre(-1e308, 0.0, 1e308));
}

}  // namespace
}  // namespace cubicml
