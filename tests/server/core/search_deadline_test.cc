// SPDX-License-Identifier: Apache-2.0

#include "server/core/search_deadline.h"

#include <memory>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

bool StopsSoon(const SearchDeadline& deadline) {
  return WaitUntil(absl::Seconds(30),
                   [&] { return deadline.token().stop_requested(); });
}

TEST(SearchDeadlineTest, StopsWhenItsMomentHasComeInWhateverOrder) {
  const SystemClock clock;
  SearchTimer timer(&clock);
  const absl::Duration now = clock.Elapsed();
  const SearchDeadline late(&timer, now + absl::Hours(1));
  const SearchDeadline second(&timer, now + absl::Milliseconds(40));
  const SearchDeadline first(&timer, now + absl::Milliseconds(20));
  const SearchDeadline past(&timer, now - absl::Seconds(1));
  EXPECT_TRUE(StopsSoon(past));
  EXPECT_TRUE(StopsSoon(first));
  EXPECT_TRUE(StopsSoon(second));
  EXPECT_FALSE(late.token().stop_requested());
}

TEST(SearchDeadlineTest, OneThatIsGoneStopsNothing) {
  const SystemClock clock;
  SearchTimer timer(&clock);
  const absl::Duration soon = clock.Elapsed() + absl::Milliseconds(20);
  auto gone = std::make_unique<SearchDeadline>(&timer, soon);
  const std::stop_token token = gone->token();
  gone.reset();
  const SearchDeadline next(&timer, soon);
  EXPECT_TRUE(StopsSoon(next));
  EXPECT_FALSE(token.stop_requested());
}

}  // namespace
}  // namespace cubicml
