// SPDX-License-Identifier: Apache-2.0

#include "server/core/context_state.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::Optional;

class ContextStateTest : public ::testing::Test {
 protected:
  ContextStateTest() {
    v1::Study study = PlainStudy();
    study.set_name("studies/a");
    definition_ = *StudyDefinition::Parse(study);
    context_ = std::make_unique<ContextState>(
        0, *definition_->space()->ParseContext({}), *definition_);
  }

  Pick MakePick(double x, double y) const {
    Pick pick;
    pick.point = {x, y};
    pick.key = definition_->space()->PointKey(pick.point);
    return pick;
  }

  void Measure(int64_t number, double x, double y, double score,
               bool feasible = true) {
    const Pick pick = MakePick(x, y);
    MeasuredRow row;
    row.number.value = number;
    row.point = pick.point;
    row.key = pick.key;
    row.feasible = feasible;
    row.metrics = {score};
    context_->AddMeasurement(row, static_cast<size_t>(number));
  }

  std::shared_ptr<const StudyDefinition> definition_;
  std::unique_ptr<ContextState> context_;
};

TEST_F(ContextStateTest, WhatIsHandedOutIsTakenUntilItIsGivenBack) {
  const Pick pick = MakePick(3, 4);
  EXPECT_FALSE(context_->IsTaken(pick.key));
  context_->Reserve(pick);
  EXPECT_TRUE(context_->IsTaken(pick.key));
  EXPECT_EQ(context_->reserved().size(), 1U);
  context_->Release(pick);
  EXPECT_FALSE(context_->IsTaken(pick.key));
  context_->Reserve(pick);
  context_->Confirm(pick.key);
  EXPECT_TRUE(context_->IsTaken(pick.key));
  EXPECT_TRUE(context_->reserved().empty());
  EXPECT_EQ(context_->explored(), 1U);
}

TEST_F(ContextStateTest, ALostConfigurationWaitsUntilItIsMeasured) {
  Pick pick = MakePick(3, 4);
  pick.lost.value = 7;
  pick.attempt = 2;
  context_->AddLost(pick);
  ASSERT_EQ(context_->lost().size(), 1U);
  Measure(9, 3, 4, 1.0);
  EXPECT_TRUE(context_->lost().empty());
  context_->AddLost(pick);
  EXPECT_TRUE(context_->lost().empty()) << "it is measured already";
  Pick often = MakePick(5, 5);
  often.attempt = kMaxAttempts + 1;
  context_->AddLost(often);
  EXPECT_TRUE(context_->lost().empty()) << "it was lost too often";
}

TEST_F(ContextStateTest, TheBaselineIsAMeanAndTheBestTheFirstOfEquals) {
  ASSERT_TRUE(context_->baseline.has_value());
  EXPECT_EQ(context_->baseline_tally().objective(), std::nullopt);
  Measure(1, 0, 0, 10.0);
  Measure(5, 2, 2, 30.0);
  Measure(3, 1, 1, 30.0);
  Measure(4, 0, 0, 14.0);
  Measure(6, 4, 4, 99.0, /*feasible=*/false);
  EXPECT_THAT(context_->baseline_tally().objective(), Optional(12.0));
  EXPECT_EQ(context_->baseline_tally().Means(*definition_),
            (BaselineMetrics{{"score", 12.0}}));
  ASSERT_TRUE(context_->best().has_value());
  EXPECT_EQ(context_->best()->number.value, 3);
  EXPECT_EQ(context_->best()->objective, 30.0);
  EXPECT_EQ(context_->finished(), 5U);
  EXPECT_EQ(context_->explored(), 3U);
}

}  // namespace
}  // namespace cubicml
