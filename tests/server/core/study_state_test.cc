// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_state.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

// How many configurations one search is to find.
class BatchSizeTest : public ::testing::Test {
 protected:
  BatchSizeTest() {
    v1::Study proto = PlainStudy();
    proto.set_name("studies/a");
    proto.mutable_settings()->set_algorithm(v1::RANDOM);
    definition_ = *StudyDefinition::Parse(proto);
    study_ = std::make_unique<StudyState>(StudyId{1}, definition_, &clock_);
    need_.group =
        *study_->FindOrAddContext(*definition_->space()->ParseContext({}));
    need_.fixed = definition_->space()->Free();
  }

  // Takes what is at hand until a search has to be made.
  SearchTask TakeUntilSearch() {
    SearchTask task;
    std::vector<Pick> picks;
    while (study_->TakeAtHand(need_, 1, &picks, &task) ==
           StudyState::Step::kPicked) {
    }
    return task;
  }

  void Finish(const SearchTask& task, absl::StatusOr<std::vector<Pick>> found) {
    std::vector<Pick> picks;
    study_->FinishSearch(need_, task, std::move(found), 1, &picks);
  }

  // Another call that comes while a search runs, and leaves at once.
  void SomebodyWaits() {
    study_->WaitForSearch(need_.group, absl::ZeroDuration());
  }

  FakeClock clock_;
  std::shared_ptr<const StudyDefinition> definition_;
  std::unique_ptr<StudyState> study_;
  SuggestionNeed need_;
};

TEST_F(BatchSizeTest, GrowsWhenSomebodyHadToWaitAndShrinksWhenNobodyHad) {
  SearchTask task = TakeUntilSearch();
  EXPECT_EQ(task.count, 1U);
  SomebodyWaits();
  Finish(task, RunSearch(task, {}));
  task = TakeUntilSearch();
  EXPECT_EQ(task.count, 16U);
  SomebodyWaits();
  Finish(task, RunSearch(task, {}));
  task = TakeUntilSearch();
  EXPECT_EQ(task.count, 32U);
  Finish(task, RunSearch(task, {}));
  task = TakeUntilSearch();
  EXPECT_EQ(task.count, 16U);
}

TEST_F(BatchSizeTest, ShrinksWhenASearchDidNotEndInTime) {
  SearchTask task = TakeUntilSearch();
  SomebodyWaits();
  Finish(task, RunSearch(task, {}));
  task = TakeUntilSearch();
  ASSERT_EQ(task.count, 16U);
  SomebodyWaits();
  Finish(task, absl::CancelledError("too late"));
  EXPECT_EQ(TakeUntilSearch().count, 2U);
}

}  // namespace
}  // namespace cubicml
