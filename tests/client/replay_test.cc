// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/replay/csv_file.h"
#include "client/replay/measured_table.h"
#include "client/replay/replay_plan.h"
#include "client/replay/replay_report.h"
#include "client/replay/table_spec.h"
#include "client/replay/table_study.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/search_space.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// ---- CSV ----

TEST(CsvFileTest, ReadsQuotesCommasAndBothLineEnds) {
  const auto file =
      ParseCsv("t.csv", "a,b\r\n\"x, \"\"y\"\"\",1\n\n\"two\nlines\",2");
  ASSERT_THAT(file.status(), IsOk());
  EXPECT_THAT(file->header, ElementsAre("a", "b"));
  ASSERT_THAT(file->rows, SizeIs(2));
  EXPECT_THAT(file->rows[0].cells, ElementsAre("x, \"y\"", "1"));
  EXPECT_THAT(file->rows[1].cells, ElementsAre("two\nlines", "2"));
  EXPECT_EQ(file->rows[1].line, 4U);
}

TEST(CsvFileTest, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(ParseCsv("t.csv", ""),
              StatusIs(kInvalid, HasSubstr("t.csv:1: the file is empty")));
  EXPECT_THAT(ParseCsv("t.csv", "a,b\n1,2\n3\n"),
              StatusIs(kInvalid, HasSubstr("t.csv:3: 1 cells")));
  EXPECT_THAT(ParseCsv("t.csv", "a,b\n1,\"2\n"),
              StatusIs(kInvalid, HasSubstr("t.csv:2: a quote is never")));
  EXPECT_THAT(ParseCsv("t.csv", "a,b\n\"1\"x,2\n"),
              StatusIs(kInvalid, HasSubstr("t.csv:2: text after")));
  EXPECT_THAT(ParseCsv("t.csv", "a,a\n"),
              StatusIs(kInvalid, HasSubstr("two columns 'a'")));
  EXPECT_THAT(ParseCsv("t.csv", "a,\n"),
              StatusIs(kInvalid, HasSubstr("column 2 has no name")));
}

// ---- Index ----

class TableIndexTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::string path = dir_.PathOf("index.json");
    WriteFileOrDie(path, text);
    return path;
  }
  TempDir dir_;
};

TEST_F(TableIndexTest, ReadsTheTablesThatAreAskedFor) {
  const std::string path = Write(R"({
    "one": {"file": "one.csv", "objective": "qps", "direction": "max",
            "params": ["a"], "context": ["m"], "status": "status", "rows": 7},
    "two": {"file": "two.csv", "objective": "ms", "direction": "min",
            "params": ["a", "b"], "status": null}})");
  auto specs = ReadTableIndex(path, {});
  ASSERT_THAT(specs.status(), IsOk());
  EXPECT_THAT(*specs, SizeIs(2));
  specs = ReadTableIndex(path, {"two"});
  ASSERT_THAT(specs.status(), IsOk());
  ASSERT_THAT(*specs, SizeIs(1));
  const TableSpec& two = specs->front();
  EXPECT_EQ(two.path, dir_.PathOf("two.csv"));
  EXPECT_THAT(two.params, ElementsAre("a", "b"));
  EXPECT_FALSE(two.maximize);
  EXPECT_EQ(two.status, "");
}

TEST_F(TableIndexTest, NamesTableAndKeyOfWhatIsWrong) {
  EXPECT_THAT(ReadTableIndex(Write("{"), {}),
              StatusIs(kInvalid, HasSubstr("not a JSON object")));
  EXPECT_THAT(ReadTableIndex(Write("{}"), {"x"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'x'")));
  EXPECT_THAT(ReadTableIndex(Write(R"({"x": {"file": "x.csv"}})"), {}),
              StatusIs(kInvalid, HasSubstr("x.objective: is missing")));
  EXPECT_THAT(
      ReadTableIndex(Write(R"({"x": {"file": "x.csv", "params": [1]}})"), {}),
      StatusIs(kInvalid, HasSubstr("x.params: must be a list of strings")));
  EXPECT_THAT(ReadTableIndex(Write(R"({"x": {"file": "x.csv",
                  "objective": "q", "direction": "up"}})"),
                             {}),
              StatusIs(kInvalid, HasSubstr("x.direction: must be")));
}

// ---- Tables ----

TableSpec MakeSpec() {
  TableSpec spec;
  spec.name = "t";
  spec.params = {"tp", "mode"};
  spec.context = {"model"};
  spec.objective = "qps";
  spec.status = "status";
  return spec;
}

TEST(MeasuredTableTest, AveragesRepeatsAndSplitsContexts) {
  const auto file = ParseCsv("t.csv",
                             "model,tp,mode,status,qps\n"
                             "a,1,x,ok,10\n"
                             "a,1,x,ok,20\n"
                             "a,2,x,oom,\n"
                             "a,4,x,ok,12\n"
                             "a,4,x,oom,\n"
                             "b,1,x,ok,7\n");
  ASSERT_THAT(file.status(), IsOk());
  const auto table = BuildMeasuredTable(*file, MakeSpec());
  ASSERT_THAT(table.status(), IsOk());
  ASSERT_THAT(table->problems, SizeIs(2));
  const MeasuredProblem& a = table->problems[0];
  EXPECT_EQ(DescribeContext(*table, a), "model=a");
  ASSERT_THAT(a.configurations, SizeIs(3));
  EXPECT_TRUE(a.configurations[0].ok);
  EXPECT_DOUBLE_EQ(a.configurations[0].objective, 15.0);
  EXPECT_FALSE(a.configurations[1].ok);
  EXPECT_EQ(a.configurations[1].status, "oom");
  EXPECT_TRUE(a.configurations[2].ok);
  EXPECT_DOUBLE_EQ(a.best, 15.0);
  EXPECT_EQ(a.measured, 2U);
  EXPECT_DOUBLE_EQ(table->problems[1].best, 7.0);
}

TEST(MeasuredTableTest, NamesLineAndColumnOfABadObjective) {
  for (const char* cell : {"", "fast", "nan", "inf", "0", "-1"}) {
    const auto file = ParseCsv(
        "t.csv", absl::StrCat("model,tp,mode,status,qps\na,1,x,ok,1\na,2,x,ok,",
                              cell, "\n"));
    ASSERT_THAT(file.status(), IsOk());
    EXPECT_THAT(BuildMeasuredTable(*file, MakeSpec()),
                StatusIs(kInvalid, HasSubstr("t.csv:3: column 'qps'")))
        << cell;
  }
}

TEST(MeasuredTableTest, NamesAColumnThatIsNotThere) {
  const auto file = ParseCsv("t.csv", "model,tp,status,qps\n");
  ASSERT_THAT(file.status(), IsOk());
  EXPECT_THAT(
      BuildMeasuredTable(*file, MakeSpec()),
      StatusIs(kInvalid, HasSubstr("t.csv:1: there is no column 'mode'")));
}

TEST(MeasuredTableTest, WithoutStatusAnEmptyObjectiveIsAFailure) {
  TableSpec spec = MakeSpec();
  spec.status = "";
  const auto file = ParseCsv("t.csv", "model,tp,mode,qps\na,1,x,\na,2,x,3\n");
  const auto table = BuildMeasuredTable(*file, spec);
  ASSERT_THAT(table.status(), IsOk());
  EXPECT_FALSE(table->problems[0].configurations[0].ok);
  EXPECT_TRUE(table->problems[0].configurations[1].ok);
}

TEST(TableStudyTest, TypesEachColumnByWhatItHolds) {
  TableSpec spec;
  spec.name = "t";
  spec.params = {"batch", "share", "flag", "kind", "gap", "tp"};
  spec.context = {"tp", "gpu name"};
  spec.objective = "qps";
  const auto file = ParseCsv("t.csv",
                             "batch,share,flag,kind,gap,tp,gpu name,qps\n"
                             "1,0.5,True,x,1,2,h100,1\n"
                             "16,2,False,,,2,h100,2\n");
  const auto table = BuildMeasuredTable(*file, spec);
  ASSERT_THAT(table.status(), IsOk());
  const TableStudy replay(*table, table->problems[0]);
  const v1::Study study = replay.Make(v1::DEFAULT, 1, 1);
  ASSERT_EQ(study.parameters_size(), 5);  // tp is context
  EXPECT_THAT(study.parameters(0).integer().values(), ElementsAre(1, 16));
  EXPECT_EQ(study.parameters(0).integer().scale(), v1::SCALE_LOG);
  EXPECT_EQ(study.parameters(1).number().max(), 2.0);
  EXPECT_TRUE(study.parameters(2).category().values(1).bool_value());
  EXPECT_EQ(study.parameters(3).category().values(1).string_value(), "x");
  EXPECT_EQ(study.parameters(4).category().values_size(), 2);
  EXPECT_EQ(study.context(0).type(), v1::INTEGER);
  EXPECT_EQ(study.context(1).name(), "gpu_name");
  EXPECT_EQ(study.context(1).type(), v1::STRING);
  // The space accepts it and holds what was measured, nothing else.
  const auto space = SearchSpace::Parse(study);
  ASSERT_THAT(space.status(), IsOk());
  v1::SuggestTrialsRequest request;
  replay.SetContext(&request);
  const auto context = (*space)->ParseContext(request.context());
  ASSERT_THAT(context.status(), IsOk());
  const auto points = (*space)->ValidPoints(*context, (*space)->Free(), 1000);
  ASSERT_NE(points, nullptr);
  EXPECT_THAT(*points, SizeIs(2));
}

TEST(TableStudyTest, NamesEveryColumnSoThatAStudyAcceptsIt) {
  TableSpec spec;
  spec.name = "t";
  spec.params = {"order",   "group", "Batch", "batch", "BATCH",
                 "batch_2", "null",  "rowid", "1st",   "limit"};
  spec.context = {"default", "Order", "index", std::string(80, 'x')};
  spec.objective = "qps";
  std::string header = "qps";
  for (const auto* columns : {&spec.params, &spec.context}) {
    for (const std::string& column : *columns) {
      absl::StrAppend(&header, ",", column);
    }
  }
  std::string csv = header + "\n";
  for (int row = 1; row <= 2; ++row) {
    absl::StrAppend(&csv, row);
    for (size_t i = 0; i < spec.params.size(); ++i) {
      absl::StrAppend(&csv, ",", row);
    }
    csv += ",1,1,1,1\n";
  }
  const auto file = ParseCsv("t.csv", csv);
  ASSERT_THAT(file.status(), IsOk());
  const auto table = BuildMeasuredTable(*file, spec);
  ASSERT_THAT(table.status(), IsOk());
  EXPECT_EQ(table->params[0].name, "order_");
  EXPECT_EQ(table->params[2].name, "Batch");
  const TableStudy replay(*table, table->problems[0]);
  EXPECT_THAT(SearchSpace::Parse(replay.Make(v1::DEFAULT, 1, 1)).status(),
              IsOk());
}

TEST(TableStudyTest, TellsOutOfMemoryFromACrash) {
  const auto file = ParseCsv("t.csv",
                             "model,tp,mode,status,qps\n"
                             "a,1,x,CUDA_OOM,\n"
                             "a,2,x,failed,\n"
                             "a,4,x,ok,3\n");
  const auto table = BuildMeasuredTable(*file, MakeSpec());
  ASSERT_THAT(table.status(), IsOk());
  const TableStudy study(*table, table->problems[0]);
  const v1::Trial trial;
  EXPECT_EQ(study.Complete(trial, 0).reason(), v1::Trial::OUT_OF_MEMORY);
  EXPECT_EQ(study.Complete(trial, 1).reason(), v1::Trial::CRASH);
  EXPECT_EQ(study.Complete(trial, 2).state(), v1::Trial::SUCCEEDED);
}

// ---- Replays ----

// Two contexts of 240 configurations: a smooth optimum, and large batches that
// do not fit.
MeasuredTable MakeTable() {
  std::string csv = "model,tp,batch,mode,status,qps\n";
  for (const int model : {1, 4}) {
    for (const int tp : {1, 2, 4, 8}) {
      for (int batch = 1; batch <= 20; ++batch) {
        for (const char* mode : {"a", "b", "c"}) {
          const bool fits = batch * model <= 10 * tp;
          const double speed = 100.0 - std::abs(batch - 9) * 4.0 -
                               std::abs(std::log2(tp) - 2.0) * 9.0 -
                               (mode[0] - 'a') * 7.0 + model;
          absl::StrAppend(&csv, model, ",", tp, ",", batch, ",", mode, ",",
                          fits ? "ok" : "oom", ",", fits ? speed : 0.0, "\n");
        }
      }
    }
  }
  TableSpec spec;
  spec.name = "synthetic";
  spec.params = {"tp", "batch", "mode"};
  spec.context = {"model"};
  spec.objective = "qps";
  spec.status = "status";
  auto file = ParseCsv("synthetic.csv", csv);
  EXPECT_THAT(file.status(), IsOk());
  auto table = BuildMeasuredTable(*file, spec);
  EXPECT_THAT(table.status(), IsOk());
  return *std::move(table);
}

std::vector<ReplayResult> MustRun(const ReplayPlan& plan,
                                  const std::vector<MeasuredTable>& tables) {
  auto results = RunPlan(plan, tables, [](size_t, size_t) {});
  EXPECT_THAT(results.status(), IsOk());
  return results.ok() ? *std::move(results) : std::vector<ReplayResult>();
}

TEST(ReplayTest, TheDefaultBeatsChance) {
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayPlan plan;
  plan.seeds = 5;
  plan.trials = 30;
  const auto results = MustRun(plan, tables);
  const auto summaries = Summarize(results, {30});
  ASSERT_THAT(summaries, SizeIs(2));
  EXPECT_EQ(summaries[0].searcher, "default");
  EXPECT_EQ(summaries[0].problems, 2U);
  EXPECT_EQ(summaries[0].runs, 10U);
  EXPECT_LT(summaries[0].mean[0], 0.7 * summaries[1].mean[0]);
}

TEST(ReplayTest, IsTheSameEveryTimeWhateverTheNumberOfWorkers) {
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayPlan plan;
  plan.seeds = 2;
  plan.trials = 15;
  plan.jobs = 3;
  const std::string once = FormatTrials(MustRun(plan, tables));
  plan.workers = 2;
  EXPECT_EQ(FormatTrials(MustRun(plan, tables)), once);
  // The header, and 15 trials in each of 2 contexts, searchers and seeds.
  const std::vector<std::string> lines = absl::StrSplit(once, '\n');
  EXPECT_THAT(lines, SizeIs(1 + 15 * 8 + 1));
}

TEST(ReplayTest, EndsWhenTheTableHasNoMore) {
  const auto file = ParseCsv("t.csv",
                             "model,tp,mode,status,qps\n"
                             "a,1,x,ok,10\na,2,x,ok,20\na,4,x,oom,\n"
                             "a,1,y,ok,30\na,2,y,ok,25\n");
  auto table = BuildMeasuredTable(*file, MakeSpec());
  ASSERT_THAT(table.status(), IsOk());
  const std::vector<MeasuredTable> tables = {*std::move(table)};
  ReplayPlan plan;
  plan.searchers = {"default", "random", "reinforce", "exhaustive"};
  plan.seeds = 1;
  plan.trials = 50;
  plan.min_configurations = 5;
  for (const ReplayResult& result : MustRun(plan, tables)) {
    ASSERT_THAT(result.trials, SizeIs(5)) << result.searcher;
    EXPECT_EQ(result.trials.back().percent_below_best, 0.0);
  }
}

TEST(ReplayTest, SaysWhenNoContextIsLargeEnough) {
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayPlan plan;
  plan.min_configurations = 1000;
  EXPECT_THAT(RunPlan(plan, tables, [](size_t, size_t) {}),
              StatusIs(kInvalid, HasSubstr("1000 configurations")));
}

TEST(ReplayTest, RefusesAnUnknownSearcher) {
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayPlan plan;
  plan.searchers = {"oracle"};
  EXPECT_THAT(RunPlan(plan, tables, [](size_t, size_t) {}),
              StatusIs(kInvalid, HasSubstr("'oracle'")));
}

TEST(ReplayReportTest, LooksWhereRunsReach) {
  EXPECT_THAT(KeepReached({10, 20, 50, 100}, 20), ElementsAre(10, 20));
  EXPECT_THAT(KeepReached({10, 20}, 100), ElementsAre(10, 20));
  EXPECT_THAT(KeepReached({10, 20}, 5), ElementsAre(5));
}

TEST(ReplayReportTest, CarriesTheLastFigureOnAndCountsFailures) {
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayResult result{&tables[0], &tables[0].problems[0], "random", 1, {}};
  result.trials.resize(3);
  result.trials[0].percent_below_best = 100.0;
  result.trials[1].ok = true;
  result.trials[1].percent_below_best = 20.0;
  result.trials[2].ok = true;
  result.trials[2].percent_below_best = 5.0;
  const auto summaries = Summarize({result}, {1, 2, 10});
  ASSERT_THAT(summaries, SizeIs(1));
  EXPECT_THAT(summaries[0].mean, ElementsAre(100.0, 20.0, 5.0));
  EXPECT_NEAR(summaries[0].failed_share, 1.0 / 3.0, 1e-12);
  EXPECT_THAT(FormatReport(summaries, {1, 2, 10}, ReportFormat::kMarkdown),
              AllOf(HasSubstr("| table | searcher |"),
                    HasSubstr("| synthetic | random | 1 | 1 | 100.00 |")));
  EXPECT_THAT(FormatReport(summaries, {1, 2, 10}, ReportFormat::kCsv),
              HasSubstr("synthetic,random,1,1,100.00,100.00,20.00"));
  EXPECT_THAT(FormatReport(summaries, {1, 2, 10}, ReportFormat::kJson),
              HasSubstr("\"trials\": 10"));
  EXPECT_THAT(FormatReport(summaries, {1, 2, 10}, ReportFormat::kTable),
              HasSubstr("mean@10"));
}

// ---- Real tables ----

TEST(ReplayOfRealTablesTest, TheDefaultIsAtLeastAsGoodAsChance) {
  const char* named = std::getenv("CUBICML_TABLES");
  const std::string index = absl::StrCat(
      named != nullptr ? named : CUBICML_DEFAULT_TABLES, "/INDEX.json");
  if (!std::filesystem::exists(index)) {
    GTEST_SKIP() << index << " is not there; CUBICML_TABLES names its folder";
  }
  std::vector<MeasuredTable> tables;
  const auto specs = ReadTableIndex(
      index, {"vtrain_single_a100_megatron", "kt_pnpoly_rtx_3090"});
  ASSERT_THAT(specs.status(), IsOk());
  for (const TableSpec& spec : *specs) {
    const auto file = ReadCsv(spec.path);
    ASSERT_THAT(file.status(), IsOk());
    auto table = BuildMeasuredTable(*file, spec);
    ASSERT_THAT(table.status(), IsOk());
    table->problems.resize(std::min<size_t>(2, table->problems.size()));
    tables.push_back(*std::move(table));
  }
  ReplayPlan plan;
  plan.seeds = 5;
  plan.trials = 30;
  plan.retrain_every = 3;
  plan.workers = 2;
  const auto summaries = Summarize(MustRun(plan, tables), {30});
  ASSERT_THAT(summaries, SizeIs(6));
  for (size_t i = 0; i < summaries.size(); i += 2) {
    EXPECT_LE(summaries[i].mean[0], summaries[i + 1].mean[0])
        << summaries[i].table;
  }
}

}  // namespace
}  // namespace cubicml
