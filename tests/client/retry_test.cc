// SPDX-License-Identifier: Apache-2.0

#include "client/retry.h"

#include <vector>

#include "absl/strings/cord.h"
#include "base/field_error.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

// Time that passes only by waiting.
class FakeWaiter final : public Waiter {
 public:
  absl::Duration Elapsed() const override { return now_; }
  void Wait(absl::Duration duration) override {
    waits.push_back(duration);
    now_ += duration;
  }
  std::vector<absl::Duration> waits;

 private:
  absl::Duration now_ = absl::Hours(1);
};

RetryOptions WithoutJitter() {
  RetryOptions options;
  options.jitter = 0;
  return options;
}

// A call that fails with `failures`, one after the other, then succeeds.
struct Call {
  std::vector<absl::Status> failures;
  RetryOptions options = WithoutJitter();
  bool wait_for_ready = false;
  Repeatable repeatable = Repeatable::kYes;
  absl::Duration timeout = absl::Seconds(30);
  absl::Duration attempt_timeout = absl::Seconds(10);

  absl::Status Run(FakeWaiter* waiter) {
    size_t next = 0;
    RetryPolicy policy(options, wait_for_ready, repeatable, Rng(1));
    return RetryCall(
        policy, timeout, attempt_timeout, waiter, [&](absl::Duration limit) {
          limits.push_back(limit);
          return next < failures.size() ? failures[next++] : absl::OkStatus();
        });
  }
  std::vector<absl::Duration> limits;
};

absl::Status Overloaded(int retry_ms) {
  absl::Status status = absl::ResourceExhaustedError("overloaded");
  status.SetPayload(kRetryDelayMsPayloadUrl,
                    absl::Cord(std::to_string(retry_ms)));
  return status;
}

TEST(RetryTest, ACallThatSucceedsIsMadeOnce) {
  FakeWaiter waiter;
  Call call;
  CUBICML_EXPECT_OK(call.Run(&waiter));
  EXPECT_EQ(call.limits.size(), 1u);
  EXPECT_TRUE(waiter.waits.empty());
}

TEST(RetryTest, WaitsGrowUpToTheirBound) {
  FakeWaiter waiter;
  Call call;
  call.options.max_attempts = 6;
  call.options.max_backoff = absl::Milliseconds(500);
  call.failures.assign(5, absl::UnavailableError("away"));
  CUBICML_EXPECT_OK(call.Run(&waiter));
  EXPECT_EQ(waiter.waits, (std::vector<absl::Duration>{
                              absl::Milliseconds(100), absl::Milliseconds(200),
                              absl::Milliseconds(400), absl::Milliseconds(500),
                              absl::Milliseconds(500)}));
}

TEST(RetryTest, JitterKeepsWaitsNearTheirLength) {
  FakeWaiter waiter;
  Call call;
  call.options.jitter = 0.25;
  call.failures.assign(1, absl::UnavailableError("away"));
  CUBICML_EXPECT_OK(call.Run(&waiter));
  EXPECT_GE(waiter.waits[0], absl::Milliseconds(75));
  EXPECT_LE(waiter.waits[0], absl::Milliseconds(125));
  EXPECT_NE(waiter.waits[0], absl::Milliseconds(100));
}

TEST(RetryTest, GivesUpAfterTheLastAttempt) {
  FakeWaiter waiter;
  Call call;
  call.failures.assign(100, absl::UnavailableError("away"));
  EXPECT_THAT(call.Run(&waiter), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(call.limits.size(), 5u);
}

TEST(RetryTest, WaitingForTheServerGoesOnUntilTheTimeout) {
  FakeWaiter waiter;
  Call call;
  call.wait_for_ready = true;
  call.failures.assign(1000, absl::UnavailableError("away"));
  EXPECT_THAT(call.Run(&waiter), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_GT(call.limits.size(), 8u);
  EXPECT_LT(waiter.Elapsed(), absl::Hours(1) + absl::Seconds(30));
  EXPECT_GT(waiter.Elapsed(), absl::Hours(1) + absl::Seconds(20));
}

TEST(RetryTest, WhatCannotBeRepeatedIsNot) {
  for (const absl::Status& failure :
       {absl::UnavailableError("lost"), absl::DeadlineExceededError("slow"),
        absl::UnknownError("lost")}) {
    FakeWaiter waiter;
    Call call;
    call.repeatable = Repeatable::kNo;
    call.failures = {failure};
    EXPECT_EQ(call.Run(&waiter), failure);
    EXPECT_EQ(call.limits.size(), 1u);
  }
}

TEST(RetryTest, MistakesAreNotRepeated) {
  for (const absl::Status& failure :
       {absl::InvalidArgumentError(""), absl::NotFoundError(""),
        absl::AlreadyExistsError(""), absl::FailedPreconditionError(""),
        absl::AbortedError(""), absl::InternalError(""),
        absl::DataLossError("")}) {
    FakeWaiter waiter;
    Call call;
    call.failures = {failure};
    EXPECT_EQ(call.Run(&waiter), failure);
    EXPECT_EQ(call.limits.size(), 1u) << failure;
  }
}

TEST(RetryTest, OverloadIsRepeatedWhenItSaysWhen) {
  FakeWaiter waiter;
  Call call;
  call.repeatable = Repeatable::kNo;  // it was not carried out
  call.failures = {Overloaded(700)};
  CUBICML_EXPECT_OK(call.Run(&waiter));
  EXPECT_EQ(waiter.waits, std::vector<absl::Duration>{absl::Milliseconds(700)});
}

TEST(RetryTest, AMessageThatIsTooLargeIsNotRepeated) {
  FakeWaiter waiter;
  Call call;
  call.failures = {absl::ResourceExhaustedError("too large")};
  EXPECT_THAT(call.Run(&waiter),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(call.limits.size(), 1u);
}

TEST(RetryTest, ARetryAfterTheDeadlineIsNotWaitedFor) {
  FakeWaiter waiter;
  Call call;
  call.timeout = absl::Seconds(1);
  call.failures = {Overloaded(5000)};
  EXPECT_THAT(call.Run(&waiter),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(waiter.waits.empty());
}

TEST(RetryTest, AnAttemptHasNoMoreThanIsLeft) {
  FakeWaiter waiter;
  Call call;
  call.timeout = absl::Seconds(1);
  call.attempt_timeout = absl::Milliseconds(950);
  call.failures = {absl::UnavailableError("away")};
  CUBICML_EXPECT_OK(call.Run(&waiter));
  EXPECT_EQ(call.limits,
            (std::vector<absl::Duration>{absl::Milliseconds(950),
                                         absl::Milliseconds(900)}));
}

}  // namespace
}  // namespace cubicml
