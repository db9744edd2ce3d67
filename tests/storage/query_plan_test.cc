// SPDX-License-Identifier: Apache-2.0
//
// No call of the hot path may read a whole table. Every statement that the
// store runs is caught as it runs, and SQLite's plan for it is looked at.

#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "storage/sqlite_study_store.h"
#include "tests/storage/example_resources.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The texts of all statements that ran on connections opened since Start().
class StatementRecorder {
 public:
  static void Start() {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&OnOpen));
  }
  static void Stop() {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&OnOpen));
  }
  static std::set<std::string> Take() {
    MutexLock lock(&State().mu);
    return std::exchange(State().statements, {});
  }

 private:
  struct Seen {
    Mutex mu;
    std::set<std::string> statements ABSL_GUARDED_BY(mu);
  };
  static Seen& State() {
    static Seen* const seen = new Seen;
    return *seen;
  }
  static int OnOpen(sqlite3* db, const char** /*error*/, const void* /*api*/) {
    return sqlite3_trace_v2(
        db, SQLITE_TRACE_STMT,
        [](unsigned int /*kind*/, void* /*context*/, void* stmt, void* text) {
          // Comments are how SQLite tells of triggers.
          if (absl::StartsWith(static_cast<const char*>(text), "--")) return 0;
          MutexLock lock(&State().mu);
          State().statements.insert(
              sqlite3_sql(static_cast<sqlite3_stmt*>(stmt)));
          return 0;
        },
        nullptr);
  }
};

class QueryPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatementRecorder::Start();
    SqliteStudyStore::Options options;
    options.path = dir_.PathOf("cubicml.db");
    options.clock = &clock_;
    options.readers = 1;
    auto store = SqliteStudyStore::Open(options);
    StatementRecorder::Stop();
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    const auto study = store_->CreateStudy(ExampleStudy("a"), {});
    ASSERT_THAT(study, IsOk());
    study_ = study->id;
    ASSERT_THAT(
        store_->CreateTrials(study_, {ExampleTrial(1), ExampleTrial(2)}, {}),
        IsOk());
    auto db = Database::Open({.path = options.path});
    ASSERT_THAT(db, IsOk());
    db_ = std::make_unique<Database>(*std::move(db));
    StatementRecorder::Take();
  }

  std::vector<std::string> PlanOf(const std::string& sql) {
    std::vector<std::string> plan;
    auto explain = db_->Prepare("EXPLAIN QUERY PLAN " + sql);
    EXPECT_THAT(explain, IsOk()) << sql;
    if (!explain.ok()) return plan;
    while (true) {
      const auto row = explain->Step();
      EXPECT_THAT(row, IsOk());
      if (!row.ok() || !*row) return plan;
      plan.emplace_back(explain->Text(3));
    }
  }

  // The plans of all that ran since the last call, apart from transactions.
  std::vector<std::string> Plans() {
    std::vector<std::string> plans;
    for (const std::string& sql : StatementRecorder::Take()) {
      if (absl::StartsWith(sql, "SELECT") || absl::StartsWith(sql, "UPDATE") ||
          absl::StartsWith(sql, "DELETE") || absl::StartsWith(sql, "INSERT")) {
        const std::vector<std::string> plan = PlanOf(sql);
        plans.insert(plans.end(), plan.begin(), plan.end());
      }
    }
    return plans;
  }

  ListOptions List(const std::string& order, const std::string& filter = "") {
    ListOptions options;
    options.page_size = 1;
    options.order_by = order;
    options.filter = filter;
    return options;
  }

  FakeClock clock_;
  TempDir dir_;
  std::unique_ptr<SqliteStudyStore> store_;
  StudyId study_;
  std::unique_ptr<Database> db_;
};

TEST_F(QueryPlanTest, GetTrialIsOneLookup) {
  CUBICML_ASSERT_OK(store_->GetTrial(study_, TrialNumber{1}));
  EXPECT_THAT(Plans(),
              ElementsAre("SEARCH trials USING INDEX sqlite_autoindex_trials_1 "
                          "(study_id=? AND number=?)"));
}

TEST_F(QueryPlanTest, UpdateTrialIsLookups) {
  CUBICML_ASSERT_OK(store_->UpdateTrial(study_, TrialNumber{1}, SucceedWith(1),
                                        {"r", "CompleteTrial", 1}));
  for (const std::string& step : Plans()) {
    EXPECT_THAT(step, HasSubstr("SEARCH"));
  }
}

TEST_F(QueryPlanTest, CreateTrialsIsLookups) {
  CUBICML_ASSERT_OK(store_->CreateTrials(study_, {ExampleTrial(1)},
                                         {"r", "SuggestTrials", 1}));
  for (const std::string& step : Plans()) {
    EXPECT_THAT(step, HasSubstr("SEARCH"));
  }
}

TEST_F(QueryPlanTest, ExpiredLeasesAreARangeOfTheirIndex) {
  CUBICML_ASSERT_OK(store_->ListExpiredLeases(clock_.Now()));
  EXPECT_THAT(Plans(), ElementsAre("SEARCH trials USING INDEX trials_by_lease "
                                   "(lease_expire_time_us<?)"));
}

TEST_F(QueryPlanTest, EveryOrderOfTrialsIsAWalkAlongAnIndex) {
  const std::map<std::string, std::string> index_of = {
      {"number", "sqlite_autoindex_trials_1"},
      {"objective", "trials_by_objective"},
      {"create_time", "trials_by_create_time"},
      {"end_time", "trials_by_end_time"}};
  for (const std::string descending : {"", " desc"}) {
    for (const auto& [order, index] : index_of) {
      SCOPED_TRACE(order + descending);
      for (const int number : {1, 2}) {
        CUBICML_ASSERT_OK(store_->UpdateTrial(study_, TrialNumber{number},
                                              SucceedWith(number), {}));
      }
      StatementRecorder::Take();
      ListOptions options = List(order + descending);
      CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage page,
                                   store_->ListTrials(study_, options));
      options.page_token = page.next_page_token;
      CUBICML_ASSERT_OK(store_->ListTrials(study_, options));
      bool walks = false;
      for (const std::string& step : Plans()) {
        EXPECT_THAT(step, HasSubstr("SEARCH trials USING"));
        walks = walks || absl::StrContains(step, index);
      }
      EXPECT_TRUE(walks);
    }
  }
}

TEST_F(QueryPlanTest, ListingOneStateWalksItsIndex) {
  CUBICML_ASSERT_OK(store_->ListTrials(study_, List("", "state = ACTIVE")));
  EXPECT_THAT(Plans(), ElementsAre("SEARCH trials USING INDEX trials_by_state "
                                   "(study_id=? AND state=?)"));
}

TEST_F(QueryPlanTest, ScanWalksTheKey) {
  CUBICML_ASSERT_OK(
      store_->ScanTrials(study_, {.after = TrialNumber{1}},
                         [](v1::Trial&&) { return absl::OkStatus(); }));
  EXPECT_THAT(Plans(),
              ElementsAre("SEARCH trials USING INDEX sqlite_autoindex_trials_1 "
                          "(study_id=? AND number>?)"));
}

TEST_F(QueryPlanTest, StudiesAndRequestsAndCountsAreLookups) {
  CUBICML_ASSERT_OK(store_->GetStudy("studies/a"));
  CUBICML_ASSERT_OK(store_->CountTrials(study_));
  CUBICML_ASSERT_OK(store_->FindCreatedTrials({"r", "SuggestTrials", 1}));
  CUBICML_ASSERT_OK(store_->DeleteRequestsBefore(clock_.Now()));
  EXPECT_FALSE(store_->GetLatestModel(study_).ok());
  CUBICML_ASSERT_OK(
      store_->DeleteStudy("studies/a", "", true, {"d", "DeleteStudy", 1}));
  for (const std::string& step : Plans()) {
    EXPECT_THAT(step, testing::Not(HasSubstr("SCAN"))) << step;
  }
}

}  // namespace
}  // namespace cubicml
