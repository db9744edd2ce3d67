// SPDX-License-Identifier: Apache-2.0

#include "predictor/knob_distance.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

const double kInactive = std::nan("");

class KnobDistanceTest : public ::testing::Test {
 protected:
  KnobDistanceTest()
      : space_(*SearchSpace::Parse(StudyFromText(R"(
          parameters { name: 'batch'
              integer { values: [1, 2, 4, 8, 16] scale: SCALE_LOG } }
          parameters { name: 'mode' category { values { string_value: 'a' }
              values { string_value: 'b' } values { string_value: 'c' } } }
          parameters { name: 'depth' integer { min: 1 max: 3 }
              active_if: "mode = 'b'" }
          parameters { name: 'rate' number { min: 0.1 max: 10 } })"))),
        distance_(*space_) {}

  float Squared(const Point& a, const Point& b) const {
    return distance_.Squared(distance_.Locate(a), distance_.Locate(b));
  }

  std::shared_ptr<const SearchSpace> space_;
  KnobDistance distance_;
};

TEST_F(KnobDistanceTest, PutsLevelsAtEqualDistances) {
  EXPECT_FLOAT_EQ(Squared({1, 0, kInactive, 1}, {2, 0, kInactive, 1}),
                  1.0F / 16.0F);
  EXPECT_FLOAT_EQ(Squared({8, 0, kInactive, 1}, {16, 0, kInactive, 1}),
                  1.0F / 16.0F);
  EXPECT_FLOAT_EQ(Squared({1, 0, kInactive, 1}, {16, 0, kInactive, 1}), 1.0F);
}

TEST_F(KnobDistanceTest, PutsAnyTwoCategoriesOneApart) {
  EXPECT_FLOAT_EQ(Squared({1, 0, kInactive, 1}, {1, 2, kInactive, 1}), 1.0F);
}

TEST_F(KnobDistanceTest, PutsActiveAndInactiveOneApart) {
  EXPECT_FLOAT_EQ(Squared({1, 1, 3, 1}, {1, 0, kInactive, 1}), 2.0F);
  EXPECT_FLOAT_EQ(Squared({1, 1, 3, 1}, {1, 1, 1, 1}), 1.0F);
}

TEST_F(KnobDistanceTest, PlacesValuesBetweenLevels) {
  // From level 4 to 6, half way to level 8.
  EXPECT_FLOAT_EQ(Squared({4, 0, kInactive, 1}, {6, 0, kInactive, 1}),
                  1.0F / 64.0F);
}

TEST_F(KnobDistanceTest, CorrelatesNearPointsMoreThanFarOnes) {
  const auto at = distance_.Locate(Point{4, 0, kInactive, 1});
  EXPECT_DOUBLE_EQ(distance_.Correlation(at, at), 1.0);
  const double near =
      distance_.Correlation(at, distance_.Locate(Point{8, 0, kInactive, 1}));
  const double far =
      distance_.Correlation(at, distance_.Locate(Point{16, 2, kInactive, 9}));
  EXPECT_GT(near, 0.8);
  EXPECT_LT(far, 0.2);
}

}  // namespace
}  // namespace cubicml
