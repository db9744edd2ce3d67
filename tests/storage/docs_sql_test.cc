// SPDX-License-Identifier: Apache-2.0
//
// Runs every query of docs/sql.md on a database with something in it, and
// holds the tables and columns that it names against the schema.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "storage/proto_time.h"
#include "storage/sqlite_study_store.h"
#include "tests/storage/example_resources.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// CTest runs tests in the root of the sources.
constexpr char kDocument[] = "docs/sql.md";

std::vector<std::string> Queries() {
  std::vector<std::string> queries;
  bool inside = false;
  const std::string document = ReadFileOrDie(kDocument);
  for (const absl::string_view line : absl::StrSplit(document, '\n')) {
    if (line == "```sql") {
      inside = true;
      queries.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&queries.back(), line, "\n");
    }
  }
  return queries;
}

class DocsSqlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SqliteStudyStore::Options options;
    options.path = dir_.PathOf("cubicml.db");
    options.clock = &clock_;
    auto store = SqliteStudyStore::Open(options);
    ASSERT_THAT(store, IsOk());
    Fill(store->get());
  }

  void Fill(SqliteStudyStore* store) {
    const auto study = store->CreateStudy(ExampleStudy("llm"), {});
    ASSERT_THAT(study, IsOk());
    std::vector<v1::Trial> trials;
    for (uint64_t i = 0; i < 20; ++i) {
      v1::Trial trial = ExampleTrial(i);
      (*trial.mutable_parameters())["micro_batch"].set_int64_value(
          static_cast<int64_t>(i % 4));
      trial.mutable_suggestion()->set_source(i == 0 ? v1::Trial::BASELINE
                                                    : v1::Trial::SEARCH);
      trial.set_state(i % 5 == 4 ? v1::Trial::INFEASIBLE
                                 : v1::Trial::SUCCEEDED);
      if (trial.state() == v1::Trial::SUCCEEDED) {
        (*trial.mutable_metrics())["qps"] = 100 + static_cast<double>(i);
      } else {
        trial.set_reason(v1::Trial::OUT_OF_MEMORY);
      }
      SetTimestamp(absl::ToUnixMicros(clock_.Now() + absl::Minutes(3)),
                   trial.mutable_end_time());
      trials.push_back(std::move(trial));
    }
    ASSERT_THAT(store->CreateTrials(study->id, trials, {}), IsOk());
    StoredModel model;
    model.quality.set_model_version(1);
    model.quality.set_kendall_tau(0.8);
    ASSERT_THAT(store->CreateModel(study->id, model), IsOk());
  }

  TempDir dir_;
  FakeClock clock_;
};

TEST_F(DocsSqlTest, EveryQueryOfTheDocumentGivesRows) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      Database db, Database::Open({.path = dir_.PathOf("cubicml.db"),
                                   .access = Database::Access::kReadOnly}));
  const std::vector<std::string> queries = Queries();
  ASSERT_GE(queries.size(), 8u);
  for (const std::string& query : queries) {
    SCOPED_TRACE(query);
    CUBICML_ASSERT_OK_AND_ASSIGN(Statement statement, db.Prepare(query));
    EXPECT_THAT(statement.Step(), IsOkAndHolds(true));
    EXPECT_FALSE(statement.IsNull(0));
    CUBICML_EXPECT_OK(statement.Run());
  }
}

TEST_F(DocsSqlTest, TheSpeedUpIsThatOfEachContextOverAllBaselineRuns) {
  SqliteStudyStore::Options options;
  options.path = dir_.PathOf("cubicml.db");
  options.clock = &clock_;
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto store,
                               SqliteStudyStore::Open(options));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy study,
                               store->CreateStudy(ExampleStudy("two"), {}));
  struct Run {
    int gpus;
    int tp;
    v1::Trial::Source source;
    double qps;
  };
  std::vector<v1::Trial> trials;
  for (const Run& run :
       {Run{8, 1, v1::Trial::BASELINE, 100}, Run{8, 1, v1::Trial::REPEAT, 50},
        Run{8, 2, v1::Trial::SEARCH, 200}, Run{8, 2, v1::Trial::REPEAT, 100},
        Run{64, 1, v1::Trial::BASELINE, 1000},
        Run{64, 4, v1::Trial::SEARCH, 1500}}) {
    v1::Trial trial = ExampleTrial(1);
    trial.set_state(v1::Trial::SUCCEEDED);
    (*trial.mutable_context())["gpus"].set_int64_value(run.gpus);
    (*trial.mutable_parameters())["tp"].set_int64_value(run.tp);
    trial.mutable_suggestion()->set_source(run.source);
    (*trial.mutable_metrics())["qps"] = run.qps;
    trials.push_back(std::move(trial));
  }
  ASSERT_THAT(store->CreateTrials(study.id, trials, {}), IsOk());
  CUBICML_ASSERT_OK_AND_ASSIGN(
      Database db, Database::Open({.path = dir_.PathOf("cubicml.db"),
                                   .access = Database::Access::kReadOnly}));
  std::map<std::string, double> speed_ups;
  for (const std::string& query : Queries()) {
    if (!absl::StrContains(query, "AS speedup")) continue;
    CUBICML_ASSERT_OK_AND_ASSIGN(Statement statement, db.Prepare(query));
    while (statement.Step().value_or(false)) {
      if (statement.Text(0) != "studies/two") continue;
      speed_ups[std::string(statement.Text(1))] = statement.Real(2);
    }
  }
  EXPECT_THAT(speed_ups, ElementsAre(Pair(R"({"gpus":64})", 1.5),
                                     Pair(R"({"gpus":8})", 2.0)));
}

TEST_F(DocsSqlTest, EveryTableAndColumnIsDocumented) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      Database db, Database::Open({.path = dir_.PathOf("cubicml.db")}));
  const std::string document = ReadFileOrDie(kDocument);
  CUBICML_ASSERT_OK_AND_ASSIGN(
      Statement columns,
      db.Prepare("SELECT t.name, c.name FROM sqlite_schema AS t, "
                 "pragma_table_xinfo(t.name) AS c WHERE t.type = 'table' "
                 "AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'requests'"));
  int count = 0;
  while (true) {
    CUBICML_ASSERT_OK_AND_ASSIGN(const bool found, columns.Step());
    if (!found) break;
    ++count;
    for (const int column : {0, 1}) {
      const std::string name(columns.Text(column));
      EXPECT_TRUE(absl::StrContains(document, name)) << name;
    }
  }
  EXPECT_GT(count, 30);
}

}  // namespace
}  // namespace cubicml
