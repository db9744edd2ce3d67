// SPDX-License-Identifier: Apache-2.0

#include "server/core/valid_walk.h"

#include <memory>
#include <stop_token>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

class ValidWalkTest : public ::testing::Test {
 protected:
  ValidWalkTest()
      : space_(*SearchSpace::Parse(PlainStudy())),
        context_(*space_->ParseContext({})) {}

  Existence Find(const std::function<bool(const Point&)>& accept) {
    return FindValid(*space_, context_, space_->Free(), stop_.get_token(),
                     accept);
  }

  const std::shared_ptr<const SearchSpace> space_;
  const Context context_;
  std::stop_source stop_;
};

TEST_F(ValidWalkTest, SaysWhetherThereIsOne) {
  int visited = 0;
  EXPECT_EQ(Find([&](const Point& point) {
              ++visited;
              return point[0] == 2.0 && point[1] == 3.0;
            }),
            Existence::kYes);
  EXPECT_EQ(visited, 2 * 16 + 4);
  visited = 0;
  EXPECT_EQ(Find([&](const Point&) {
              ++visited;
              return false;
            }),
            Existence::kNo);
  EXPECT_EQ(visited, 16 * 16);
}

TEST_F(ValidWalkTest, WhoIsStoppedDoesNotKnow) {
  EXPECT_EQ(Find([&](const Point&) {
              stop_.request_stop();
              return false;
            }),
            Existence::kUnknown);
}

}  // namespace
}  // namespace cubicml
