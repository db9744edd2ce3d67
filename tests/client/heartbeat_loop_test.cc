// SPDX-License-Identifier: Apache-2.0

#include "client/heartbeat_loop.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

// A loop whose time and answers are the test's.
class HeartbeatLoopTest : public ::testing::Test {
 protected:
  std::shared_ptr<HeldTrial> AddTrial(const std::string& name,
                                      absl::Duration lease) {
    auto trial = std::make_shared<HeldTrial>(name, "me");
    loop_.Add(trial, lease);
    return trial;
  }
  void Pass(absl::Duration duration) {
    clock_.Advance(duration);
    loop_.RunDue();
  }

  FakeClock clock_;
  std::vector<v1::HeartbeatRequest> sent_;
  absl::Status failure_;
  bool should_stop_ = false;
  absl::Duration lease_ = absl::Seconds(30);
  HeartbeatLoop loop_{
      [this](const v1::HeartbeatRequest& request)
          -> absl::StatusOr<v1::HeartbeatResponse> {
        sent_.push_back(request);
        if (!failure_.ok()) return failure_;
        v1::HeartbeatResponse response;
        response.mutable_lease()->set_seconds(absl::ToInt64Seconds(lease_));
        response.set_should_stop(should_stop_);
        return response;
      },
      &clock_};
};

TEST_F(HeartbeatLoopTest, NothingIsSentWithoutTrials) {
  EXPECT_EQ(loop_.RunDue(), absl::InfiniteDuration());
  EXPECT_TRUE(sent_.empty());
}

TEST_F(HeartbeatLoopTest, ATrialIsKeptThreeTimesPerLease) {
  AddTrial("a", absl::Seconds(30));
  Pass(absl::Seconds(5));  // the first one comes early
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].name(), "a");
  EXPECT_EQ(sent_[0].client_id(), "me");
  EXPECT_EQ(loop_.RunDue(), absl::Seconds(10));
  Pass(absl::Seconds(9));
  EXPECT_EQ(sent_.size(), 1u);
  Pass(absl::Seconds(1));
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(HeartbeatLoopTest, TheLeaseOfTheAnswerCounts) {
  AddTrial("a", absl::Hours(10));
  lease_ = absl::Seconds(6);
  Pass(absl::Seconds(5));
  EXPECT_EQ(loop_.RunDue(), absl::Seconds(2));
}

TEST_F(HeartbeatLoopTest, ALongLeaseIsStillKeptEveryMinute) {
  lease_ = absl::Hours(24);
  AddTrial("a", lease_);
  Pass(absl::Seconds(5));
  EXPECT_EQ(loop_.RunDue(), absl::Minutes(1));
}

TEST_F(HeartbeatLoopTest, OneLoopKeepsManyTrials) {
  AddTrial("a", absl::Seconds(30));
  AddTrial("b", absl::Seconds(30));
  Pass(absl::Seconds(5));
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(HeartbeatLoopTest, AWishToStopReachesTheTrial) {
  const auto trial = AddTrial("a", absl::Seconds(30));
  should_stop_ = true;
  EXPECT_FALSE(trial->should_stop());
  Pass(absl::Seconds(5));
  EXPECT_TRUE(trial->should_stop());
}

TEST_F(HeartbeatLoopTest, AServerThatIsAwayIsTriedSooner) {
  AddTrial("a", absl::Seconds(30));
  failure_ = absl::UnavailableError("away");
  Pass(absl::Seconds(5));
  EXPECT_EQ(loop_.RunDue(), absl::Seconds(5));
  failure_ = absl::OkStatus();
  Pass(absl::Seconds(5));
  EXPECT_EQ(sent_.size(), 2u);
}

TEST_F(HeartbeatLoopTest, ATrialThatHasEndedIsLeftAlone) {
  const auto trial = AddTrial("a", absl::Seconds(30));
  failure_ = absl::FailedPreconditionError("EXPIRED");
  Pass(absl::Seconds(5));
  Pass(absl::Hours(1));
  EXPECT_EQ(sent_.size(), 1u);
  // An expired trial is worth finishing: its result still counts.
  EXPECT_FALSE(trial->should_stop());
}

TEST_F(HeartbeatLoopTest, ARemovedTrialIsLeftAlone) {
  const auto trial = AddTrial("a", absl::Seconds(30));
  loop_.Remove(trial.get());
  Pass(absl::Hours(1));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(HeartbeatLoopTest, AMeasurementIsSentWithinSeconds) {
  const auto trial = AddTrial("a", absl::Minutes(10));
  lease_ = absl::Minutes(10);
  Pass(absl::Seconds(5));
  v1::IntermediateMeasurement measurement;
  measurement.set_step(7);
  trial->SetIntermediate(measurement);
  loop_.Hurry(trial.get());
  EXPECT_EQ(loop_.RunDue(), absl::Seconds(5));
  Pass(absl::Seconds(5));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].intermediate().step(), 7);
}

TEST_F(HeartbeatLoopTest, AMeasurementThatDidNotArriveIsSentAgain) {
  const auto trial = AddTrial("a", absl::Seconds(30));
  v1::IntermediateMeasurement measurement;
  measurement.set_step(7);
  trial->SetIntermediate(measurement);
  failure_ = absl::UnavailableError("away");
  Pass(absl::Seconds(5));
  failure_ = absl::OkStatus();
  Pass(absl::Seconds(5));
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].intermediate().step(), 7);
  Pass(absl::Seconds(10));
  EXPECT_FALSE(sent_[2].has_intermediate());
}

TEST_F(HeartbeatLoopTest, TheThreadStopsWithTheLoop) {
  AddTrial("a", absl::Minutes(10));
  loop_.Start();
  loop_.Start();
}

}  // namespace
}  // namespace cubicml
