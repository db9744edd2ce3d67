// SPDX-License-Identifier: Apache-2.0
//
// The stores under the contract suite, and what only the one on SQLite does:
// files, locks, restarts.

#include "storage/sqlite_study_store.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "tests/storage/example_resources.h"
#include "tests/storage/study_store_contract.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

// A store that owns the folder of its file.
class StoreWithFolder final : public StudyStore {
 public:
  static std::unique_ptr<StudyStore> Make(const Clock* clock) {
    auto made = std::make_unique<StoreWithFolder>();
    SqliteStudyStore::Options options;
    options.path = made->dir_.PathOf("cubicml.db");
    options.clock = clock;
    options.readers = 2;
    auto store = SqliteStudyStore::Open(options);
    EXPECT_THAT(store, IsOk());
    if (!store.ok()) return nullptr;
    made->store_ = *std::move(store);
    return made;
  }

  absl::StatusOr<StoredStudy> CreateStudy(const v1::Study& study,
                                          const RequestKey& key) override {
    return store_->CreateStudy(study, key);
  }
  absl::StatusOr<StoredStudy> GetStudy(absl::string_view name) override {
    return store_->GetStudy(name);
  }
  absl::StatusOr<StudyPage> ListStudies(const ListOptions& options) override {
    return store_->ListStudies(options);
  }
  absl::StatusOr<StoredStudy> UpdateStudy(absl::string_view name,
                                          const StudyMutation& mutation,
                                          const RequestKey& key) override {
    return store_->UpdateStudy(name, mutation, key);
  }
  absl::Status DeleteStudy(absl::string_view name, absl::string_view etag,
                           bool force, const RequestKey& key) override {
    return store_->DeleteStudy(name, etag, force, key);
  }
  absl::StatusOr<std::vector<v1::Trial>> CreateTrials(
      StudyId study, std::vector<v1::Trial> trials,
      const RequestKey& key) override {
    return store_->CreateTrials(study, std::move(trials), key);
  }
  absl::StatusOr<v1::Trial> UpdateTrial(StudyId study, TrialNumber number,
                                        const TrialMutation& mutation,
                                        const RequestKey& key) override {
    return store_->UpdateTrial(study, number, mutation, key);
  }
  absl::StatusOr<v1::Trial> GetTrial(StudyId study,
                                     TrialNumber number) override {
    return store_->GetTrial(study, number);
  }
  absl::StatusOr<TrialPage> ListTrials(StudyId study,
                                       const ListOptions& options) override {
    return store_->ListTrials(study, options);
  }
  absl::Status ScanTrials(
      StudyId study, const ScanOptions& options,
      const std::function<absl::Status(v1::Trial&&)>& visit) override {
    return store_->ScanTrials(study, options, visit);
  }
  absl::StatusOr<std::map<v1::Trial::State, int64_t>> CountTrials(
      StudyId study) override {
    return store_->CountTrials(study);
  }
  absl::StatusOr<std::vector<TrialKey>> ListExpiredLeases(
      absl::Time now) override {
    return store_->ListExpiredLeases(now);
  }
  absl::StatusOr<std::optional<std::vector<v1::Trial>>> FindCreatedTrials(
      const RequestKey& key) override {
    return store_->FindCreatedTrials(key);
  }
  absl::StatusOr<int64_t> DeleteRequestsBefore(absl::Time before) override {
    return store_->DeleteRequestsBefore(before);
  }
  absl::Status CreateModel(StudyId study, const StoredModel& model) override {
    return store_->CreateModel(study, model);
  }
  absl::StatusOr<StoredModel> GetLatestModel(StudyId study) override {
    return store_->GetLatestModel(study);
  }
  absl::Status WriteHealth() const override { return store_->WriteHealth(); }

 private:
  TempDir dir_;
  std::unique_ptr<StudyStore> store_;  // dies before its folder
};

std::unique_ptr<StudyStore> MakeInMemory(const Clock* clock) {
  SqliteStudyStore::Options options;
  options.clock = clock;
  auto store = SqliteStudyStore::Open(options);
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StudyStoreContractTest,
    ::testing::Values(
        StudyStoreFactory{"Fake",
                          [](const Clock* clock) {
                            return std::make_unique<FakeStudyStore>(clock);
                          }},
        StudyStoreFactory{"SqliteInMemory", &MakeInMemory},
        StudyStoreFactory{"SqliteFile", &StoreWithFolder::Make}),
    StudyStoreFactoryName);

class SqliteStudyStoreTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SqliteStudyStore>> Open(
      const std::string& name = "cubicml.db",
      absl::Duration lock_wait = absl::ZeroDuration()) {
    SqliteStudyStore::Options options;
    options.lock_wait = lock_wait;
    options.path = dir_.PathOf(name);
    options.clock = &clock_;
    options.readers = 2;
    return SqliteStudyStore::Open(options);
  }

  TempDir dir_;
  FakeClock clock_;
};

TEST_F(SqliteStudyStoreTest, EverythingIsThereAfterARestart) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy study,
                               store->CreateStudy(ExampleStudy("a"), {}));
  const RequestKey key{"r1", "SuggestTrials", 1};
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const auto trials, store->CreateTrials(study.id, {ExampleTrial(1)}, key));
  store.reset();
  CUBICML_ASSERT_OK_AND_ASSIGN(store, Open());
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store->GetStudy("studies/a"));
  EXPECT_THAT(read.study, EqualsProto(study.study));
  EXPECT_THAT(store->GetTrial(study.id, TrialNumber{1}),
              IsOkAndHolds(EqualsProto(trials[0])));
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto found, store->FindCreatedTrials(key));
  EXPECT_TRUE(found.has_value());
}

TEST_F(SqliteStudyStoreTest, StudyIdsAreNotReusedAfterARestart) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy first,
                               store->CreateStudy(ExampleStudy("a"), {}));
  CUBICML_ASSERT_OK(store->DeleteStudy("studies/a", "", false, {}));
  store.reset();
  CUBICML_ASSERT_OK_AND_ASSIGN(store, Open());
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy second,
                               store->CreateStudy(ExampleStudy("a"), {}));
  EXPECT_GT(second.id, first.id);
}

TEST_F(SqliteStudyStoreTest, SecondServerFailsAndNamesTheLock) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("cubicml.db.lock")));
  std::filesystem::create_symlink(dir_.PathOf("cubicml.db"),
                                  dir_.PathOf("other.db"));
  EXPECT_THAT(Open("other.db"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("another server")));
  store.reset();
  CUBICML_EXPECT_OK(Open());
}

TEST_F(SqliteStudyStoreTest, ServerWaitsForTheOneBeforeToEnd) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  absl::Status opened = absl::UnknownError("not opened");
  std::jthread next([this, &opened]() noexcept {
    opened = Open("cubicml.db", absl::Minutes(5)).status();
  });
  store.reset();
  next.join();
  CUBICML_EXPECT_OK(opened);
}

TEST_F(SqliteStudyStoreTest, CloseLeavesOneFileAndRefusesWhatComes) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  CUBICML_ASSERT_OK(store->CreateStudy(ExampleStudy("a"), {}));
  CUBICML_EXPECT_OK(store->Close());
  CUBICML_EXPECT_OK(store->Close());
  EXPECT_FALSE(std::filesystem::exists(dir_.PathOf("cubicml.db-wal")));
  EXPECT_THAT(store->GetStudy("studies/a"),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->CreateStudy(ExampleStudy("b"), {}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store->WriteHealth(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SqliteStudyStoreTest, MissingFolderIsAClearError) {
  EXPECT_THAT(Open("none/cubicml.db"), StatusIs(absl::StatusCode::kNotFound,
                                                HasSubstr("none/cubicml.db")));
}

TEST_F(SqliteStudyStoreTest, GarbageIsDataLossAndIsLeftAlone) {
  const std::string garbage(10'000, 'x');
  WriteFileOrDie(dir_.PathOf("cubicml.db"), garbage);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(ReadFileOrDie(dir_.PathOf("cubicml.db")), garbage);
}

TEST_F(SqliteStudyStoreTest, EmptyFileBecomesADatabase) {
  WriteFileOrDie(dir_.PathOf("cubicml.db"), "");
  CUBICML_EXPECT_OK(Open());
}

TEST_F(SqliteStudyStoreTest, DatabaseOfAnotherProgramIsRefusedUnchanged) {
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(
        Database db, Database::Open({.path = dir_.PathOf("cubicml.db")}));
    CUBICML_ASSERT_OK(db.Execute("CREATE TABLE theirs (x)"));
  }
  const std::string before = ReadFileOrDie(dir_.PathOf("cubicml.db"));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("another program")));
  EXPECT_EQ(ReadFileOrDie(dir_.PathOf("cubicml.db")), before);
}

TEST_F(SqliteStudyStoreTest, NewerDatabaseIsRefusedWithBothVersions) {
  CUBICML_ASSERT_OK(Open());
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(
        Database db, Database::Open({.path = dir_.PathOf("cubicml.db")}));
    CUBICML_ASSERT_OK(db.Execute("PRAGMA user_version = 9999"));
  }
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("9999"), HasSubstr("up to 1"),
                                     HasSubstr("start the newer program"))));
}

TEST_F(SqliteStudyStoreTest, WhoMeetsAnotherProcessIsToldToComeBack) {
  SqliteStudyStore::Options options;
  options.path = dir_.PathOf("cubicml.db");
  options.clock = &clock_;
  options.busy_timeout = absl::Milliseconds(1);
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, SqliteStudyStore::Open(options));
  CUBICML_ASSERT_OK_AND_ASSIGN(Database other,
                               Database::Open({.path = options.path}));
  CUBICML_ASSERT_OK(other.Execute("BEGIN IMMEDIATE"));
  const absl::Status status =
      store->CreateStudy(ExampleStudy("a"), {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(status.GetPayload(kRetryDelayMsPayloadUrl).has_value());
  CUBICML_EXPECT_OK(store->WriteHealth());
  CUBICML_ASSERT_OK(other.Execute("ROLLBACK"));
  CUBICML_EXPECT_OK(store->CreateStudy(ExampleStudy("a"), {}));
}

TEST_F(SqliteStudyStoreTest, AHugeStudyIsDeletedInPieces) {
  class Commits final : public CommitObserver {
   public:
    void OnCommit(size_t, absl::Duration, size_t) override { ++count; }
    void OnWriteFailure(const absl::Status&) override {}
    std::atomic<int> count{0};
  };
  Commits commits;
  SqliteStudyStore::Options options;
  options.path = dir_.PathOf("cubicml.db");
  options.clock = &clock_;
  options.observer = &commits;
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, SqliteStudyStore::Open(options));
  for (const auto& [trials, pieces] :
       std::vector<std::pair<size_t, int>>{{10, 1}, {1000, 2}, {2500, 3}}) {
    CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy study,
                                 store->CreateStudy(ExampleStudy("a"), {}));
    CUBICML_ASSERT_OK(store->CreateTrials(
        study.id, std::vector<v1::Trial>(trials, ExampleTrial(1)), {}));
    const int before = commits.count;
    CUBICML_ASSERT_OK(store->DeleteStudy("studies/a", "", true, {}));
    EXPECT_EQ(commits.count - before, pieces) << trials;
    EXPECT_THAT(store->GetTrial(study.id, TrialNumber{1}),
                StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST_F(SqliteStudyStoreTest, UnreadableRowIsDataLossAndHarmsNoOther) {
  CUBICML_ASSERT_OK_AND_ASSIGN(auto store, Open());
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy study,
                               store->CreateStudy(ExampleStudy("a"), {}));
  CUBICML_ASSERT_OK(
      store->CreateTrials(study.id, {ExampleTrial(1), ExampleTrial(2)}, {}));
  store.reset();
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(
        Database db, Database::Open({.path = dir_.PathOf("cubicml.db")}));
    CUBICML_ASSERT_OK(
        db.Execute("UPDATE trials SET trial = x'FF' WHERE number = 1"));
  }
  CUBICML_ASSERT_OK_AND_ASSIGN(store, Open());
  EXPECT_THAT(store->GetTrial(study.id, TrialNumber{1}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(store->UpdateTrial(study.id, TrialNumber{1}, SucceedWith(1), {}),
              StatusIs(absl::StatusCode::kDataLoss));
  CUBICML_EXPECT_OK(
      store->UpdateTrial(study.id, TrialNumber{2}, SucceedWith(1), {}));
  CUBICML_EXPECT_OK(store->WriteHealth());
}

}  // namespace
}  // namespace cubicml
