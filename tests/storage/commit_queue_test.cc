// SPDX-License-Identifier: Apache-2.0

#include "storage/commit_queue.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

// Keeps what it is told.
class RecordingObserver final : public CommitObserver {
 public:
  void OnCommit(size_t operations, absl::Duration /*latency*/,
                size_t /*queue_depth*/) override {
    MutexLock lock(&mu_);
    groups_.push_back(operations);
  }
  void OnWriteFailure(const absl::Status& /*status*/) override {
    MutexLock lock(&mu_);
    ++failures_;
  }
  std::vector<size_t> groups() {
    MutexLock lock(&mu_);
    return groups_;
  }
  int failures() {
    MutexLock lock(&mu_);
    return failures_;
  }

 private:
  Mutex mu_;
  std::vector<size_t> groups_ ABSL_GUARDED_BY(mu_);
  int failures_ ABSL_GUARDED_BY(mu_) = 0;
};

// Lets the test hold the writer inside an operation.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  // Waits until the writer stands at the gate.
  void AwaitArrival() {
    MutexLock lock(&mu_);
    while (!arrived_) changed_.Wait(&mu_);
  }
  void Pass() {
    MutexLock lock(&mu_);
    arrived_ = true;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(&mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool arrived_ ABSL_GUARDED_BY(mu_) = false;
};

absl::Status Insert(Database* db, int64_t value) {
  CUBICML_ASSIGN_OR_RETURN(Statement insert,
                           db->Cached("INSERT INTO t VALUES (?1)"));
  insert.BindInt(1, value);
  return insert.Run();
}

class CommitQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto db = Database::Open({.path = path_});
    ASSERT_THAT(db, IsOk());
    ASSERT_THAT(db->Execute("PRAGMA journal_mode = WAL;"
                            "CREATE TABLE t (x INTEGER PRIMARY KEY) STRICT"),
                IsOk());
    options_.clock = &clock_;
    options_.observer = &observer_;
    options_.max_group = 4;
    options_.max_queue = 8;
    db_ = std::make_unique<Database>(*std::move(db));
  }
  void Start() {
    queue_ = std::make_unique<CommitQueue>(std::move(*db_), options_);
  }
  // What another connection sees.
  int64_t Count(const std::string& where = "1") {
    auto db = Database::Open({.path = path_});
    EXPECT_THAT(db, IsOk());
    const auto count =
        db->QueryInt(absl::StrCat("SELECT count(*) FROM t WHERE ", where));
    EXPECT_THAT(count, IsOk());
    return count.value_or(-1);
  }
  // Starts a thread that inserts `value`.
  std::thread InsertLater(int64_t value, absl::Status* result) {
    return std::thread([this, value, result] {
      *result =
          queue_->Apply([value](Database* db) { return Insert(db, value); });
    });
  }

  TempDir dir_;
  const std::string path_ = dir_.PathOf("t.db");
  FakeClock clock_;
  RecordingObserver observer_;
  CommitQueue::Options options_;
  std::unique_ptr<Database> db_;
  std::unique_ptr<CommitQueue> queue_;
};

TEST_F(CommitQueueTest, ChangeIsVisibleToOthersWhenApplyReturns) {
  Start();
  CUBICML_EXPECT_OK(queue_->Apply([](Database* db) { return Insert(db, 1); }));
  EXPECT_EQ(Count(), 1);
  EXPECT_THAT(observer_.groups(), testing::ElementsAre(1));
}

TEST_F(CommitQueueTest, FailingOperationRollsBackAloneAndOthersCommit) {
  Start();
  Gate gate;
  std::thread holder([&] {
    CUBICML_EXPECT_OK(queue_->Apply([&](Database*) {
      gate.Pass();
      return absl::OkStatus();
    }));
  });
  gate.AwaitArrival();  // what comes now forms one group
  std::vector<absl::Status> results(3);
  std::vector<std::thread> threads;
  threads.push_back(InsertLater(1, &results[0]));
  threads.emplace_back([&] {
    results[1] = queue_->Apply([](Database* db) -> absl::Status {
      CUBICML_RETURN_IF_ERROR(Insert(db, 2));
      return absl::FailedPreconditionError("changed my mind");
    });
  });
  threads.push_back(InsertLater(3, &results[2]));
  gate.Open();
  for (std::thread& thread : threads) thread.join();
  holder.join();
  CUBICML_EXPECT_OK(results[0]);
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kFailedPrecondition,
                                   "changed my mind"));
  CUBICML_EXPECT_OK(results[2]);
  EXPECT_EQ(Count(), 2);
  EXPECT_EQ(Count("x = 2"), 0);
  EXPECT_EQ(observer_.failures(), 0);
}

TEST_F(CommitQueueTest, FullQueueIsRefusedWithARetryDelay) {
  Start();
  Gate gate;
  std::thread holder([&] {
    CUBICML_EXPECT_OK(queue_->Apply([&](Database*) {
      gate.Pass();
      return absl::OkStatus();
    }));
  });
  gate.AwaitArrival();
  constexpr int kCallers = 12;  // 8 fit
  std::vector<absl::Status> results(kCallers);
  std::vector<std::thread> threads;
  std::atomic<int> refused = 0;
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&, i] {
      const auto index = static_cast<size_t>(i);
      results[index] =
          queue_->Apply([i](Database* db) { return Insert(db, i); });
      if (!results[index].ok() && ++refused == 4) gate.Open();
    });
  }
  for (std::thread& thread : threads) thread.join();
  holder.join();
  int ok = 0;
  for (const absl::Status& result : results) {
    if (result.ok()) {
      ++ok;
      continue;
    }
    EXPECT_THAT(result, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(result.GetPayload(kRetryDelayMsPayloadUrl), "100");
  }
  EXPECT_EQ(ok, 8);
  EXPECT_EQ(Count(), 8);
  // The group is bounded too.
  for (const size_t group : observer_.groups()) EXPECT_LE(group, 4u);
}

TEST_F(CommitQueueTest, CloseFinishesWhatIsQueuedAndRefusesWhatComes) {
  Start();
  Gate gate;
  std::thread holder([&] {
    CUBICML_EXPECT_OK(queue_->Apply([&](Database*) {
      gate.Pass();
      return absl::OkStatus();
    }));
  });
  gate.AwaitArrival();
  std::vector<absl::Status> results(6);
  std::vector<std::thread> threads;
  std::atomic<int> started = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      ++started;
      results[i] = queue_->Apply(
          [i](Database* db) { return Insert(db, static_cast<int64_t>(i)); });
    });
  }
  gate.Open();
  CUBICML_EXPECT_OK(queue_->Close());
  for (std::thread& thread : threads) thread.join();
  holder.join();
  int64_t ok = 0;
  for (const absl::Status& result : results) {
    if (result.ok()) {
      ++ok;
    } else {
      EXPECT_THAT(result, StatusIs(absl::StatusCode::kUnavailable));
    }
  }
  EXPECT_EQ(Count(), ok);
  EXPECT_THAT(queue_->Apply([](Database*) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
  EXPECT_THAT(queue_->WriteHealth(), StatusIs(absl::StatusCode::kUnavailable));
  CUBICML_EXPECT_OK(queue_->Close());
}

TEST_F(CommitQueueTest, ErrorsOfStatementsKeepTheirMeaning) {
  Start();
  CUBICML_EXPECT_OK(queue_->Apply([](Database* db) { return Insert(db, 1); }));
  EXPECT_THAT(queue_->Apply([](Database* db) { return Insert(db, 1); }),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(
      queue_->Apply([](Database* db) { return db->Execute("SELECT none"); }),
      StatusIs(absl::StatusCode::kInternal));
  CUBICML_EXPECT_OK(queue_->WriteHealth());
}

TEST_F(CommitQueueTest, LogIsCopiedIntoTheDatabaseAsItGrows) {
  options_.checkpoint_frames = 20;
  Start();
  for (int64_t i = 0; i < 500; ++i) {
    CUBICML_ASSERT_OK(
        queue_->Apply([i](Database* db) { return Insert(db, i); }));
  }
  // 500 commits of a page each would be 2 MB if the log never started over.
  EXPECT_LT(ReadFileOrDie(path_ + "-wal").size(), 200u * 1024);
}

TEST_F(CommitQueueTest, LogStaysBoundedUnderAReaderThatComesAndGoes) {
  options_.checkpoint_frames = 20;
  options_.busy_timeout = absl::Seconds(5);
  Start();
  auto reader = Database::Open({.path = path_});
  ASSERT_THAT(reader, IsOk());
  CUBICML_ASSERT_OK(reader->Execute("BEGIN; SELECT * FROM t"));
  for (int64_t i = 0; i < 100; ++i) {
    CUBICML_ASSERT_OK(
        queue_->Apply([i](Database* db) { return Insert(db, i); }));
  }
  CUBICML_ASSERT_OK(reader->Execute("COMMIT"));
  for (int64_t i = 100; i < 1000; ++i) {
    CUBICML_ASSERT_OK(
        queue_->Apply([i](Database* db) { return Insert(db, i); }));
  }
  EXPECT_LT(ReadFileOrDie(path_ + "-wal").size(), 2u * 1024 * 1024);
}

}  // namespace
}  // namespace cubicml
