// SPDX-License-Identifier: Apache-2.0
//
// The store on a disk that fails. Whatever fails and whenever: nothing that was
// acknowledged is lost, errors are those of the contract, and the store says
// that it does not take writes, or takes them again.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "storage/sqlite_study_store.h"
#include "tests/storage/example_resources.h"
#include "tests/storage/faulty_vfs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::AnyOf;

class FaultInjectionTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SqliteStudyStore>> Open(
      const std::string& path, const std::string& vfs) {
    SqliteStudyStore::Options options;
    options.path = path;
    options.clock = &clock_;
    options.readers = 1;
    options.vfs = vfs;
    options.disk_probe_interval = absl::Milliseconds(1);
    return SqliteStudyStore::Open(options);
  }

  // A store with one study on the faulty disk.
  void Start(const std::string& name) {
    path_ = dir_.PathOf(name);
    acked_.clear();
    auto store = Open(path_, FaultyVfs::kName);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    const auto study = store_->CreateStudy(ExampleStudy("a"), {});
    ASSERT_THAT(study, IsOk());
    study_ = study->id;
  }

  // Creates a trial or completes the last; notes it when acknowledged.
  absl::Status Write(int step) {
    if (step % 2 == 1 && !acked_.empty()) {
      const int64_t number = static_cast<int64_t>(acked_.size());
      const auto updated = store_->UpdateTrial(study_, TrialNumber{number},
                                               SucceedWith(step), {});
      if (updated.ok()) acked_.back() = step;
      return updated.status();
    }
    const auto created =
        store_->CreateTrials(study_, {ExampleTrial(1), ExampleTrial(2)}, {});
    if (created.ok()) acked_.resize(acked_.size() + 2, -1);
    return created.status();
  }

  // Everything acknowledged is in the database at `path`. Numbers of what was
  // not may be there or not.
  void ExpectAckedIn(const std::string& path) {
    CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open(path, ""));
    for (size_t i = 0; i < acked_.size(); ++i) {
      const auto trial =
          store->GetTrial(study_, TrialNumber{static_cast<int64_t>(i) + 1});
      ASSERT_THAT(trial, IsOk());
      if (acked_[i] < 0) continue;
      EXPECT_EQ(trial->state(), v1::Trial::SUCCEEDED);
    }
    CUBICML_EXPECT_OK(store->CreateTrials(study_, {ExampleTrial(1)}, {}));
    store.reset();
    CUBICML_ASSERT_OK_AND_ASSIGN(Database db, Database::Open({.path = path}));
    EXPECT_THAT(db.QueryText("PRAGMA integrity_check"), IsOkAndHolds("ok"));
  }

  SystemClock clock_;
  TempDir dir_;
  FaultyVfs vfs_;
  std::string path_;
  std::unique_ptr<SqliteStudyStore> store_;
  StudyId study_;
  std::vector<int> acked_;  // of trial i+1: the step that completed it, or -1
};

TEST_F(FaultInjectionTest, FailedSyncFailsTheCommitAndStopsWrites) {
  Start("a.db");
  CUBICML_ASSERT_OK(Write(0));
  vfs_.Inject(Fault::kSyncFails, 0);
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kInternal));
  // A sync that failed once cannot be trusted again, even if the disk is well.
  vfs_.Heal();
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store_->WriteHealth(), StatusIs(absl::StatusCode::kUnavailable));
  CUBICML_EXPECT_OK(store_->GetTrial(study_, TrialNumber{1}));
  EXPECT_FALSE(store_->Close().ok());
  store_.reset();
  ExpectAckedIn(path_);
}

TEST_F(FaultInjectionTest, ShortWriteFailsTheCommitAndStopsWrites) {
  Start("a.db");
  CUBICML_ASSERT_OK(Write(0));
  vfs_.Inject(Fault::kShortWrite, 0);
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kInternal));
  vfs_.Heal();
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kUnavailable));
  store_.reset();
  ExpectAckedIn(path_);
}

TEST_F(FaultInjectionTest, FullDiskRefusesWritesAndRecoversByItself) {
  Start("a.db");
  CUBICML_ASSERT_OK(Write(0));
  vfs_.Inject(Fault::kDiskFull, 0);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Write(0);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_TRUE(status.GetPayload(kRetryDelayMsPayloadUrl).has_value());
  }
  EXPECT_THAT(store_->WriteHealth(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  CUBICML_EXPECT_OK(store_->GetTrial(study_, TrialNumber{1}));
  vfs_.Heal();
  // Nobody writes; the probe finds out.
  while (!store_->WriteHealth().ok()) std::this_thread::yield();
  CUBICML_EXPECT_OK(Write(0));
  CUBICML_EXPECT_OK(store_->Close());
  store_.reset();
  ExpectAckedIn(path_);
}

TEST_F(FaultInjectionTest, DiskThatBreaksWhileFullStopsWritesForGood) {
  Start("a.db");
  vfs_.Inject(Fault::kDiskFull, 0);
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kResourceExhausted));
  vfs_.Inject(Fault::kSyncFails, 0);
  while (store_->WriteHealth().code() != absl::StatusCode::kUnavailable) {
    std::this_thread::yield();
  }
  vfs_.Heal();
  EXPECT_THAT(Write(0), StatusIs(absl::StatusCode::kUnavailable));
  store_.reset();
  ExpectAckedIn(path_);
}

TEST_F(FaultInjectionTest, FailedReadIsAnErrorOfThatCall) {
  Start("a.db");
  for (int i = 0; i < 20; ++i) CUBICML_ASSERT_OK(Write(0));
  store_.reset();
  auto reopened = Open(path_, FaultyVfs::kName);
  ASSERT_THAT(reopened, IsOk());
  store_ = *std::move(reopened);
  vfs_.Inject(Fault::kReadFails, 0);
  const absl::Status status = store_->GetTrial(study_, TrialNumber{1}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
  vfs_.Heal();
  CUBICML_EXPECT_OK(store_->GetTrial(study_, TrialNumber{1}));
  CUBICML_EXPECT_OK(store_->WriteHealth());
  store_.reset();
  ExpectAckedIn(path_);
}

TEST_F(FaultInjectionTest, ADeleteThatWasCutShortIsFinishedAtTheNextStart) {
  Start("a.db");
  CUBICML_ASSERT_OK(store_->CreateTrials(
      study_, std::vector<v1::Trial>(2500, ExampleTrial(1)), {}));
  vfs_.Inject(Fault::kSyncFails, 1);
  // It is gone with its first commit, whatever becomes of its trials.
  CUBICML_EXPECT_OK(store_->DeleteStudy("studies/a", "", true, {}));
  EXPECT_THAT(store_->GetStudy("studies/a"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->ListStudies({})->studies, testing::IsEmpty());
  vfs_.Heal();
  store_.reset();
  const auto count_trials = [this]() -> int64_t {
    auto db = Database::Open({.path = path_});
    return db->QueryInt("SELECT count(*) FROM trials").value_or(-1);
  };
  EXPECT_GT(count_trials(), 0);
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open(path_, ""));
    CUBICML_EXPECT_OK(store->CreateStudy(ExampleStudy("a"), {}));
    EXPECT_EQ(store->ListStudies({})->studies.size(), 1U);
  }
  EXPECT_EQ(count_trials(), 0);
}

// Every kind of fault at every one of the first calls that can have it.
TEST_F(FaultInjectionTest, NothingAcknowledgedIsLostWhereverTheDiskFails) {
  for (const Fault fault : {Fault::kSyncFails, Fault::kShortWrite,
                            Fault::kDiskFull, Fault::kReadFails}) {
    for (int skip = 0; skip < 30; skip += skip < 8 ? 1 : 6) {
      SCOPED_TRACE(
          absl::StrCat("fault ", static_cast<int>(fault), " after ", skip));
      Start(absl::StrCat(static_cast<int>(fault), "-", skip, ".db"));
      if (HasFatalFailure()) return;
      vfs_.Inject(fault, skip);
      for (int step = 0; step < 14; ++step) {
        const absl::Status status = Write(step);
        EXPECT_THAT(status.code(),
                    AnyOf(absl::StatusCode::kOk, absl::StatusCode::kInternal,
                          absl::StatusCode::kUnavailable,
                          absl::StatusCode::kResourceExhausted));
      }
      vfs_.Heal();
      store_.reset();
      ExpectAckedIn(path_);
      if (HasFatalFailure()) return;
    }
  }
}

// Power goes after each acknowledgement in turn: only what had been synced is
// still there, and that must be enough.
TEST_F(FaultInjectionTest, AcknowledgedMeansSynced) {
  Start("a.db");
  for (int step = 0; step < 40; ++step) {
    CUBICML_ASSERT_OK(Write(step));
    const TempDir after;
    vfs_.SaveSyncedFiles(after.path());
    ExpectAckedIn(after.PathOf("a.db"));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace cubicml
