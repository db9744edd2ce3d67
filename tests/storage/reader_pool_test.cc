// SPDX-License-Identifier: Apache-2.0

#include "storage/reader_pool.h"

#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

absl::Status ReadNothing(Database* /*db*/) { return absl::OkStatus(); }

class ReaderPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<ReaderPool> OpenPool(size_t connections) {
    Database::Options options;
    options.path = dir_.PathOf("t.db");
    EXPECT_THAT(Database::Open(options)->Execute("CREATE TABLE t (x)"), IsOk());
    options.access = Database::Access::kReadOnly;
    auto pool = ReaderPool::Open(options, connections);
    EXPECT_THAT(pool, IsOk());
    return *std::move(pool);
  }

  TempDir dir_;
};

TEST_F(ReaderPoolTest, ShortReadsNeverWaitForLongOnes) {
  const std::unique_ptr<ReaderPool> pool = OpenPool(3);
  Mutex mu;
  CondVar changed;
  int inside = 0;
  bool open = false;
  std::vector<std::thread> lists;
  for (int i = 0; i < 5; ++i) {
    lists.emplace_back([&] {
      EXPECT_THAT(pool->ReadLong(nullptr,
                                 [&](Database*) {
                                   MutexLock lock(&mu);
                                   ++inside;
                                   changed.NotifyAll();
                                   while (!open) changed.Wait(&mu);
                                   return absl::OkStatus();
                                 }),
                  IsOk());
    });
  }
  {
    MutexLock lock(&mu);
    while (inside < 2) changed.Wait(&mu);
  }
  for (int i = 0; i < 100; ++i) EXPECT_THAT(pool->Read(ReadNothing), IsOk());
  {
    MutexLock lock(&mu);
    EXPECT_EQ(inside, 2);
    open = true;
    changed.NotifyAll();
  }
  for (std::thread& list : lists) list.join();
  EXPECT_EQ(inside, 5);
}

TEST_F(ReaderPoolTest, NobodyWaitsForAConnectionLongerThanHeWants) {
  const std::unique_ptr<ReaderPool> pool = OpenPool(1);
  int asked = 0;
  const auto give_up = [&asked] {
    return ++asked < 3 ? absl::OkStatus() : absl::DeadlineExceededError("late");
  };
  EXPECT_THAT(pool->Read([&](Database*) {
    EXPECT_THAT(pool->ReadLong(give_up, ReadNothing),
                StatusIs(absl::StatusCode::kDeadlineExceeded, "late"));
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(pool->ReadLong(nullptr, ReadNothing), IsOk());
}

TEST_F(ReaderPoolTest, OneConnectionServesAll) {
  const std::unique_ptr<ReaderPool> pool = OpenPool(1);
  EXPECT_THAT(pool->ReadLong(nullptr, ReadNothing), IsOk());
  EXPECT_THAT(pool->Read(ReadNothing), IsOk());
  pool->Close();
  EXPECT_THAT(pool->ReadLong(nullptr, ReadNothing),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace cubicml
