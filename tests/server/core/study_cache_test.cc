// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_cache.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

class StudyCacheTest : public ::testing::Test {
 protected:
  void Store(const std::string& name) {
    v1::Study study = PlainStudy();
    study.set_name(name);
    ASSERT_THAT(store_.CreateStudy(study, RequestKey{}), IsOk());
  }

  FakeClock clock_;
  FakeStudyStore store_{&clock_};
  const std::unique_ptr<Trainer> trainer_ = NewLinearTrainer();
  StudyCache cache_{{&store_, trainer_.get(), &clock_, clock_.Elapsed()}, 2};
};

TEST_F(StudyCacheTest, AStudyIsLoadedOnceAndUnknownOnesAreForgotten) {
  Store("studies/a");
  EXPECT_THAT(cache_.Acquire("studies/b").status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(cache_.Find("studies/a"), nullptr);
  EXPECT_THAT(cache_.FindId("studies/a"), IsOk());
  EXPECT_EQ(cache_.Find("studies/a"), nullptr);
  const auto first = cache_.Acquire("studies/a");
  ASSERT_THAT(first.status(), IsOk());
  const auto second = cache_.Acquire("studies/a");
  ASSERT_THAT(second.status(), IsOk());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(cache_.List().size(), 1U);
}

TEST_F(StudyCacheTest, TheLeastRecentlyUsedLeavesButNeverOneInUse) {
  for (const char* name : {"studies/a", "studies/b", "studies/c"}) Store(name);
  const auto used = cache_.Acquire("studies/a");
  ASSERT_THAT(used.status(), IsOk());
  ASSERT_THAT(cache_.Acquire("studies/b").status(), IsOk());
  ASSERT_THAT(cache_.Acquire("studies/c").status(), IsOk());
  EXPECT_NE(cache_.Find("studies/a"), nullptr);
  EXPECT_EQ(cache_.Find("studies/b"), nullptr);
  EXPECT_NE(cache_.Find("studies/c"), nullptr);
}

TEST_F(StudyCacheTest, WhoChangesAStudyIsAlone) {
  Store("studies/a");
  std::atomic<int> inside{0};
  std::atomic<bool> changing{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto handle = cache_.Acquire("studies/a");
        ASSERT_THAT(handle.status(), IsOk());
        ++inside;
        EXPECT_FALSE(changing);
        EXPECT_FALSE((*handle)->retired());
        --inside;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    auto handle = cache_.AcquireExclusive("studies/a");
    ASSERT_THAT(handle.status(), IsOk());
    changing = true;
    EXPECT_EQ(inside, 0);
    changing = false;
    if (i % 2 == 0) handle->Drop();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StudyCacheTest, AStudyThatWasChangedIsLoadedAnew) {
  Store("studies/a");
  std::shared_ptr<StudyState> before;
  {
    ASSERT_THAT(cache_.Acquire("studies/a").status(), IsOk());
    before = cache_.Find("studies/a");
  }
  {
    auto handle = cache_.AcquireExclusive("studies/a");
    ASSERT_THAT(handle.status(), IsOk());
    handle->Drop();
  }
  EXPECT_TRUE(before->retired());
  const auto after = cache_.Acquire("studies/a");
  ASSERT_THAT(after.status(), IsOk());
  EXPECT_NE(after->get(), before.get());
}

TEST_F(StudyCacheTest, AStudyThatWasNotChangedAfterAllStays) {
  Store("studies/a");
  ASSERT_THAT(cache_.Acquire("studies/a").status(), IsOk());
  const std::shared_ptr<StudyState> before = cache_.Find("studies/a");
  ASSERT_THAT(cache_.AcquireExclusive("studies/a").status(), IsOk());
  EXPECT_FALSE(before->retired());
  EXPECT_EQ(cache_.Find("studies/a"), before);
  // Of one that is not in memory nothing is left behind.
  ASSERT_THAT(cache_.AcquireExclusive("studies/b").status(), IsOk());
  EXPECT_EQ(cache_.List().size(), 1U);
  EXPECT_THAT(cache_.Acquire("studies/b").status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StudyCacheTest, ALoadGoesOnWhenWhoBeganItLeaves) {
  StudyCache cache({&store_, trainer_.get(), &clock_, clock_.Elapsed()}, 2, 1);
  Store("studies/a");
  Mutex mu;
  CondVar changed;
  bool begun = false;
  bool open = false;
  store_.SetScanHook([&] {
    MutexLock lock(&mu);
    begun = true;
    changed.NotifyAll();
    while (!open) changed.Wait(&mu);
  });
  const absl::Duration soon = clock_.Elapsed() + absl::Milliseconds(10);
  EXPECT_THAT(cache.AcquireBefore("studies/a", soon).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  {
    MutexLock lock(&mu);
    while (!begun) changed.Wait(&mu);
  }
  // Who comes meanwhile waits for the same load, as long as he likes.
  EXPECT_THAT(cache.AcquireBefore("studies/a", soon).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(cache.Find("studies/a"), nullptr);
  {
    MutexLock lock(&mu);
    open = true;
    changed.NotifyAll();
  }
  EXPECT_THAT(cache.Acquire("studies/a").status(), IsOk());
  EXPECT_EQ(store_.scans(), 1);
  // It can be changed: nobody uses it.
  EXPECT_THAT(cache.AcquireExclusive("studies/a").status(), IsOk());
}

TEST_F(StudyCacheTest, AStudyLoadedByAThreadIsThereForAll) {
  StudyCache cache({&store_, trainer_.get(), &clock_, clock_.Elapsed()}, 1, 2);
  EXPECT_THAT(cache.Acquire("studies/a").status(),
              StatusIs(absl::StatusCode::kNotFound));
  Store("studies/a");
  Store("studies/b");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = (i + t) % 2 == 0 ? "studies/a" : "studies/b";
        const auto handle = cache.Acquire(name);
        ASSERT_THAT(handle.status(), IsOk());
        EXPECT_EQ((*handle)->definition().name(), name);
        EXPECT_FALSE((*handle)->retired());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(cache.Acquire("studies/none").status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StudyCacheTest, NobodyWaitsForEver) {
  Store("studies/a");
  const absl::Duration soon = absl::Milliseconds(10);
  {
    const auto changing = cache_.AcquireExclusive("studies/a");
    ASSERT_THAT(changing.status(), IsOk());
    EXPECT_THAT(
        cache_.AcquireBefore("studies/a", clock_.Elapsed() + soon).status(),
        StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(cache_.AcquireBefore("studies/a", clock_.Elapsed()).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_THAT(cache_.AcquireExclusive("studies/a", soon).status(),
                StatusIs(absl::StatusCode::kUnavailable));
  }
  const auto used = cache_.Acquire("studies/a");
  ASSERT_THAT(used.status(), IsOk());
  EXPECT_THAT(cache_.AcquireExclusive("studies/a", soon).status(),
              StatusIs(absl::StatusCode::kUnavailable));
  // Who gave up keeps nobody out.
  EXPECT_THAT(cache_.AcquireBefore("studies/a", clock_.Elapsed()).status(),
              IsOk());
}

}  // namespace
}  // namespace cubicml
