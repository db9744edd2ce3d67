// SPDX-License-Identifier: Apache-2.0

#include "predictor/reinforce_policy.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

std::shared_ptr<const SearchSpace> MakeSpace() {
  return *SearchSpace::Parse(
      StudyFromText(absl::StrCat(CategoryText("a", 4), CategoryText("b", 3),
                                 "parameters { name: 'n' integer { min: 1 "
                                 "max: 1000 } }")));
}

TEST(ReinforcePolicyTest, StartsUniform) {
  const auto space = MakeSpace();
  const ReinforcePolicy policy(*space);
  EXPECT_DOUBLE_EQ(policy.RelativeEntropy(), 1.0);
  Rng rng(1);
  std::vector<int> first(4, 0);
  std::vector<size_t> order;
  for (int i = 0; i < 4000; ++i) {
    policy.OrderLevels(0, 4, &rng, &order);
    ++first[order[0]];
  }
  for (const int count : first) EXPECT_NEAR(count, 1000, 120);
}

TEST(ReinforcePolicyTest, OrdersEveryLevelOnce) {
  const auto space = MakeSpace();
  const ReinforcePolicy policy(*space);
  Rng rng(1);
  std::vector<size_t> order;
  policy.OrderLevels(0, 4, &rng, &order);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(ReinforcePolicyTest, ReachesEveryLevelOfALargeRange) {
  const auto space = MakeSpace();
  const ReinforcePolicy policy(*space);
  Rng rng(1);
  std::vector<size_t> order;
  std::vector<bool> seen(1000, false);
  for (int i = 0; i < 2000; ++i) {
    policy.OrderLevels(2, 1000, &rng, &order);
    EXPECT_LE(order.size(), 32U);
    for (const size_t level : order) seen.at(level) = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
}

TEST(ReinforcePolicyTest, OrdersTheValuesOfATableToo) {
  const auto space = MakeSpace();
  const ReinforcePolicy policy(*space);
  Rng rng(1);
  std::vector<size_t> order;
  policy.OrderLevels(0, 7, &rng, &order);  // not as many as the knob's levels
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(ReinforcePolicyTest, LearnsWhatIsRewarded) {
  const auto space = MakeSpace();
  ReinforcePolicy policy(*space);
  const std::vector<Point> points = {{2, 0, 500}, {1, 0, 500}};
  const std::vector<double> advantages = {1.0, -1.0};
  for (int i = 0; i < 50; ++i) policy.Update(points, advantages, 0.5, 0.0);
  Rng rng(1);
  std::vector<size_t> order;
  int chosen = 0;
  for (int i = 0; i < 100; ++i) {
    policy.OrderLevels(0, 4, &rng, &order);
    chosen += order[0] == 2;
    // What is ruled out least is tried last.
    EXPECT_EQ(order[3], 1U);
  }
  EXPECT_GT(chosen, 95);
  EXPECT_LT(policy.RelativeEntropy(), 1.0);
}

TEST(ReinforcePolicyTest, TheEntropyBonusPullsBackToUniform) {
  const auto space = MakeSpace();
  ReinforcePolicy policy(*space);
  const std::vector<Point> points = {{2, 1, 500}, {1, 0, 500}};
  policy.Update(points, std::vector<double>{1.0, -1.0}, 4.0, 0.0);
  const double before = policy.RelativeEntropy();
  for (int i = 0; i < 20; ++i) {
    policy.Update(points, std::vector<double>{0.0, 0.0}, 1.0, 0.5);
  }
  EXPECT_GT(policy.RelativeEntropy(), before);
}

}  // namespace
}  // namespace cubicml
