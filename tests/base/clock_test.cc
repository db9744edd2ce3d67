// SPDX-License-Identifier: Apache-2.0

#include "base/clock.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace cubicml {
namespace {

TEST(SystemClockTest, NowIsAPlausibleDateAndElapsedNeverGoesBack) {
  const SystemClock clock;
  EXPECT_GT(clock.Now(), absl::FromUnixSeconds(1'600'000'000));
  absl::Duration last = clock.Elapsed();
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration now = clock.Elapsed();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(FakeClockTest, StandsStillUntilItIsMoved) {
  FakeClock clock(absl::FromUnixSeconds(100));
  const absl::Duration elapsed = clock.Elapsed();
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(105));
  EXPECT_EQ(clock.Elapsed(), elapsed + absl::Seconds(5));
  clock.SetNow(absl::FromUnixSeconds(1));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(1));
  EXPECT_EQ(clock.Elapsed(), elapsed + absl::Seconds(5));
}

}  // namespace
}  // namespace cubicml
