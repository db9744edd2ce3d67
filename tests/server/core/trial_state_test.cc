// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_state.h"

#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(TrialStateTest, TheTableHoldsTheseTransitionsAndNoOthers) {
  const std::set<std::pair<v1::Trial::State, v1::Trial::State>> legal = {
      {v1::Trial::ACTIVE, v1::Trial::ACTIVE},
      {v1::Trial::ACTIVE, v1::Trial::STOPPING},
      {v1::Trial::ACTIVE, v1::Trial::SUCCEEDED},
      {v1::Trial::ACTIVE, v1::Trial::INFEASIBLE},
      {v1::Trial::ACTIVE, v1::Trial::ABANDONED},
      {v1::Trial::ACTIVE, v1::Trial::EXPIRED},
      {v1::Trial::STOPPING, v1::Trial::STOPPING},
      {v1::Trial::STOPPING, v1::Trial::SUCCEEDED},
      {v1::Trial::STOPPING, v1::Trial::INFEASIBLE},
      {v1::Trial::STOPPING, v1::Trial::ABANDONED},
      {v1::Trial::STOPPING, v1::Trial::CANCELLED},
      {v1::Trial::EXPIRED, v1::Trial::ACTIVE},
      {v1::Trial::EXPIRED, v1::Trial::SUCCEEDED},
      {v1::Trial::EXPIRED, v1::Trial::INFEASIBLE},
      {v1::Trial::EXPIRED, v1::Trial::ABANDONED},
      {v1::Trial::EXPIRED, v1::Trial::CANCELLED},
      {v1::Trial::ABANDONED, v1::Trial::CANCELLED},
  };
  for (int from = v1::Trial::State_MIN; from <= v1::Trial::State_MAX; ++from) {
    for (int to = v1::Trial::State_MIN; to <= v1::Trial::State_MAX; ++to) {
      const auto pair = std::make_pair(static_cast<v1::Trial::State>(from),
                                       static_cast<v1::Trial::State>(to));
      EXPECT_EQ(IsLegalTransition(pair.first, pair.second),
                legal.contains(pair))
          << v1::Trial::State_Name(pair.first) << " to "
          << v1::Trial::State_Name(pair.second);
    }
  }
}

TEST(TrialStateTest, ATrialThatHasEndedSaysHowAndWhen) {
  v1::Trial trial;
  trial.set_name("studies/a/trials/1");
  trial.set_state(v1::Trial::SUCCEEDED);
  trial.mutable_end_time()->set_seconds(1'000'000);
  EXPECT_THAT(
      CheckTransition(trial, v1::Trial::ABANDONED, "CompleteTrial"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "studies/a/trials/1 has ended already: it is SUCCEEDED since "
               "1970-01-12T13:46:40Z"));
}

TEST(TrialStateTest, AnIllegalTransitionOfAHeldTrialNamesBothStates) {
  v1::Trial trial;
  trial.set_name("studies/a/trials/1");
  trial.set_state(v1::Trial::STOPPING);
  EXPECT_THAT(CheckTransition(trial, v1::Trial::ACTIVE, "Heartbeat"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "studies/a/trials/1 is STOPPING; Heartbeat cannot make "
                       "it ACTIVE"));
}

TEST(TrialStateTest, ReasonsFitTheirStates) {
  EXPECT_TRUE(ReasonFits(v1::Trial::OUT_OF_MEMORY, v1::Trial::INFEASIBLE));
  EXPECT_TRUE(ReasonFits(v1::Trial::PREEMPTED, v1::Trial::ABANDONED));
  EXPECT_TRUE(ReasonFits(v1::Trial::REASON_UNSPECIFIED, v1::Trial::SUCCEEDED));
  EXPECT_FALSE(ReasonFits(v1::Trial::PREEMPTED, v1::Trial::INFEASIBLE));
  EXPECT_FALSE(ReasonFits(v1::Trial::OUT_OF_MEMORY, v1::Trial::ABANDONED));
  EXPECT_FALSE(ReasonFits(v1::Trial::CRASH, v1::Trial::SUCCEEDED));
}

}  // namespace
}  // namespace cubicml
