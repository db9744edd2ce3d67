// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_change.h"

#include <map>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/time_proto.h"
#include "server/core/trial_state.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

constexpr v1::Trial::State kStates[] = {
    v1::Trial::ACTIVE,     v1::Trial::STOPPING,  v1::Trial::SUCCEEDED,
    v1::Trial::INFEASIBLE, v1::Trial::ABANDONED, v1::Trial::EXPIRED,
    v1::Trial::CANCELLED};

class TrialChangeTest : public ::testing::Test {
 protected:
  TrialChangeTest() {
    v1::Study study = BoundedStudy();
    study.set_name("studies/a");
    definition_ = *StudyDefinition::Parse(study);
  }

  v1::Trial InState(v1::Trial::State state) const {
    v1::Trial trial;
    trial.set_name("studies/a/trials/1");
    trial.set_client_id("job");
    trial.set_state(state);
    if (IsHeld(state)) {
      *trial.mutable_lease_expire_time() =
          TimeToProto(now_ + absl::Minutes(10));
    }
    return trial;
  }

  v1::CompleteTrialRequest Completion(v1::Trial::State state) const {
    v1::CompleteTrialRequest request;
    request.set_client_id("job");
    request.set_state(state);
    if (state == v1::Trial::SUCCEEDED) {
      (*request.mutable_metrics())["qps"] = 5;
      (*request.mutable_metrics())["loss"] = 2;
      (*request.mutable_metrics())["memory"] = 70;
    }
    return request;
  }

  absl::Status Complete(const v1::CompleteTrialRequest& request,
                        v1::Trial* trial) const {
    return ApplyCompletion(request, *definition_, {}, now_, trial);
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::shared_ptr<const StudyDefinition> definition_;
};

// A refusal changes nothing.
void ExpectUnchanged(const absl::Status& status, const v1::Trial& before,
                     const v1::Trial& after) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(after, EqualsProto(before));
}

TEST_F(TrialChangeTest, CompletionFollowsTheTableFromEveryState) {
  for (const v1::Trial::State from : kStates) {
    for (const v1::Trial::State to :
         {v1::Trial::SUCCEEDED, v1::Trial::INFEASIBLE, v1::Trial::ABANDONED}) {
      SCOPED_TRACE(v1::Trial::State_Name(from) + " to " +
                   v1::Trial::State_Name(to));
      const v1::Trial before = InState(from);
      v1::Trial trial = before;
      v1::CompleteTrialRequest request = Completion(to);
      request.set_reason_detail(to == from ? "told differently" : "");
      const absl::Status status = Complete(request, &trial);
      if (!IsLegalTransition(from, to)) {
        ExpectUnchanged(status, before, trial);
        continue;
      }
      EXPECT_THAT(status, IsOk());
      EXPECT_EQ(trial.state(), to);
      EXPECT_EQ(trial.late(), from == v1::Trial::EXPIRED && IsMeasured(to));
      EXPECT_TRUE(trial.has_end_time());
      EXPECT_FALSE(trial.has_lease_expire_time());
    }
  }
}

TEST_F(TrialChangeTest, HeartbeatsFollowTheTableFromEveryState) {
  v1::HeartbeatRequest request;
  request.set_client_id("job");
  request.mutable_intermediate()->set_step(3);
  for (const v1::Trial::State from : kStates) {
    SCOPED_TRACE(v1::Trial::State_Name(from));
    const v1::Trial before = InState(from);
    v1::Trial trial = before;
    const absl::Status status =
        ApplyHeartbeat(request, absl::Minutes(1), true, now_, &trial);
    if (from == v1::Trial::CANCELLED) {
      EXPECT_TRUE(IsAlreadySo(status));
    } else if (IsHeld(from) || from == v1::Trial::EXPIRED) {
      EXPECT_THAT(status, IsOk());
      EXPECT_EQ(trial.state(), from == v1::Trial::STOPPING ? v1::Trial::STOPPING
                                                           : v1::Trial::ACTIVE);
      EXPECT_EQ(TimeFromProto(trial.lease_expire_time()),
                now_ + absl::Minutes(1));
      EXPECT_EQ(trial.intermediate().step(), 3);
    } else {
      ExpectUnchanged(status, before, trial);
    }
  }
  v1::Trial expired = InState(v1::Trial::EXPIRED);
  EXPECT_TRUE(IsAlreadySo(
      ApplyHeartbeat(request, absl::Minutes(1), false, now_, &expired)));
}

TEST_F(TrialChangeTest, CancellationFollowsTheTableFromEveryState) {
  const std::map<v1::Trial::State, v1::Trial::State> expected = {
      {v1::Trial::ACTIVE, v1::Trial::STOPPING},
      {v1::Trial::STOPPING, v1::Trial::CANCELLED},
      {v1::Trial::EXPIRED, v1::Trial::CANCELLED},
      {v1::Trial::ABANDONED, v1::Trial::CANCELLED}};
  for (const v1::Trial::State from : kStates) {
    SCOPED_TRACE(v1::Trial::State_Name(from));
    const v1::Trial before = InState(from);
    v1::Trial trial = before;
    const absl::Status status = ApplyCancellation(now_, &trial);
    if (from == v1::Trial::CANCELLED) {
      EXPECT_TRUE(IsAlreadySo(status));
    } else if (expected.contains(from)) {
      EXPECT_THAT(status, IsOk());
      EXPECT_EQ(trial.state(), expected.at(from));
    } else {
      ExpectUnchanged(status, before, trial);
    }
  }
}

TEST_F(TrialChangeTest, ALapsedLeaseEndsOnlyWhatIsHeldAndNotRenewed) {
  const absl::Time seen = now_ + absl::Minutes(10);
  const absl::Time later = now_ + absl::Hours(1);
  for (const v1::Trial::State from : kStates) {
    SCOPED_TRACE(v1::Trial::State_Name(from));
    v1::Trial trial = InState(from);
    const absl::Status status = ApplyExpiry(seen, later, &trial);
    if (!IsHeld(from)) {
      EXPECT_TRUE(IsAlreadySo(status));
      continue;
    }
    EXPECT_THAT(status, IsOk());
    EXPECT_EQ(trial.state(), from == v1::Trial::ACTIVE ? v1::Trial::EXPIRED
                                                       : v1::Trial::CANCELLED);
  }
  v1::Trial renewed = InState(v1::Trial::ACTIVE);
  EXPECT_TRUE(
      IsAlreadySo(ApplyExpiry(seen - absl::Seconds(1), later, &renewed)));
  EXPECT_EQ(renewed.state(), v1::Trial::ACTIVE);
}

TEST_F(TrialChangeTest, OnlyTheHolderMayChangeATrial) {
  const v1::Trial before = InState(v1::Trial::ACTIVE);
  v1::Trial trial = before;
  v1::CompleteTrialRequest request = Completion(v1::Trial::SUCCEEDED);
  request.set_client_id("another");
  ExpectUnchanged(Complete(request, &trial), before, trial);
  v1::HeartbeatRequest heartbeat;
  ExpectUnchanged(
      ApplyHeartbeat(heartbeat, absl::Minutes(1), false, now_, &trial), before,
      trial);
  trial.clear_client_id();
  EXPECT_THAT(Complete(request, &trial), IsOk());
}

TEST_F(TrialChangeTest, ATrialThatHasEndedIsNotSaidToBeHeld) {
  v1::Trial trial = InState(v1::Trial::ACTIVE);
  ASSERT_THAT(Complete(Completion(v1::Trial::SUCCEEDED), &trial), IsOk());
  v1::CompleteTrialRequest another = Completion(v1::Trial::SUCCEEDED);
  another.set_client_id("another");
  const std::string ended =
      "studies/a/trials/1 has ended already: it is SUCCEEDED since "
      "1970-01-12T13:46:40Z";
  for (const absl::Status& status :
       {Complete(another, &trial),
        Complete(Completion(v1::Trial::ABANDONED), &trial),
        ApplyCancellation(now_, &trial)}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, ended));
  }
}

TEST_F(TrialChangeTest, TheSameCompletionAgainChangesNothing) {
  for (const v1::Trial::State to :
       {v1::Trial::SUCCEEDED, v1::Trial::INFEASIBLE, v1::Trial::ABANDONED}) {
    SCOPED_TRACE(v1::Trial::State_Name(to));
    v1::Trial trial = InState(v1::Trial::ACTIVE);
    v1::CompleteTrialRequest request = Completion(to);
    ASSERT_THAT(Complete(request, &trial), IsOk());
    EXPECT_TRUE(IsAlreadySo(Complete(request, &trial)));
    (*request.mutable_metrics())["qps"] = 6;
    const v1::Trial before = trial;
    ExpectUnchanged(Complete(request, &trial), before, trial);
  }
}

TEST_F(TrialChangeTest, WhatTheServiceMadeOfAMeasurementIsNoDifference) {
  v1::Trial trial = InState(v1::Trial::ACTIVE);
  v1::CompleteTrialRequest request = Completion(v1::Trial::SUCCEEDED);
  (*request.mutable_metrics())["memory"] = 80;
  ASSERT_THAT(Complete(request, &trial), IsOk());
  EXPECT_EQ(trial.state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(trial.reason(), v1::Trial::METRIC_CONSTRAINT);
  EXPECT_EQ(trial.metrics().at("qps"), 5);
  EXPECT_TRUE(IsAlreadySo(Complete(request, &trial)));

  v1::Trial silent = InState(v1::Trial::ACTIVE);
  request.clear_metrics();
  ASSERT_THAT(Complete(request, &silent), IsOk());
  EXPECT_EQ(silent.state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(silent.reason(), v1::Trial::NO_MEASUREMENT);
  EXPECT_TRUE(IsAlreadySo(Complete(request, &silent)));
}

}  // namespace
}  // namespace cubicml
