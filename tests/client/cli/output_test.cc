// SPDX-License-Identifier: Apache-2.0

#include "client/cli/output.h"

#include "client/cli/json_views.h"
#include "client/cli/trial_tables.h"
#include "client/csv.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(OutputTest, NumbersStandToTheRight) {
  Table table;
  table.headers = {"name", "qps"};
  table.rows = {{"a", "5"}, {"größe", "1000"}, {"b"}};
  EXPECT_EQ(FormatTable(table),
            "name    qps\n"
            "a         5\n"
            "größe  1000\n"
            "b\n");
}

auto Row(size_t line, const std::vector<std::string>& cells) {
  return AllOf(Field(&CsvRow::line, line), Field(&CsvRow::cells, cells));
}

TEST(CsvTest, WhatIsWrittenReadsBackAsItWas) {
  const std::vector<std::vector<std::string>> rows = {
      {"a", "b,c"}, {"say \"hi\"", "two\nlines"}, {"", "x"}};
  std::string text;
  for (const auto& row : rows) text += FormatCsvRow(row);
  EXPECT_THAT(ParseCsvRows("line ", text),
              IsOkAndHolds(ElementsAre(Row(1, rows[0]), Row(2, rows[1]),
                                       Row(4, rows[2]))));
}

TEST(CsvTest, FilesOfOtherSystemsAreRead) {
  EXPECT_THAT(ParseCsvRows("line ",
                           "\xEF\xBB\xBF"
                           "a,b\r\n1,2\r\n\r\n3,4"),
              IsOkAndHolds(ElementsAre(Row(1, {"a", "b"}), Row(2, {"1", "2"}),
                                       Row(3, {""}), Row(4, {"3", "4"}))));
  EXPECT_THAT(
      ParseCsvRows("line ", "a\n\"b"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2: ")));
}

TEST(OutputTest, YamlQuotesWhatWouldReadAsSomethingElse) {
  const Json json = {
      {"a", "true"}, {"b", true},          {"c", "12"},
      {"d", "- x"},  {"e", "x: y"},        {"f", ""},
      {"g", {1, 2}}, {"h", Json::array()}, {"i", {{{"x", 1}, {"y", {1, 2}}}}}};
  EXPECT_EQ(FormatYaml(json),
            "a: \"true\"\n"
            "b: true\n"
            "c: \"12\"\n"
            "d: \"- x\"\n"
            "e: \"x: y\"\n"
            "f: \"\"\n"
            "g: [1, 2]\n"
            "h: []\n"
            "i:\n"
            "  - x: 1\n"
            "    y: [1, 2]\n");
}

v1::Trial ExampleTrial() {
  v1::Trial trial;
  trial.set_name("studies/example/trials/7");
  trial.set_state(v1::Trial::SUCCEEDED);
  (*trial.mutable_parameters())["batch"] = MakeValue(8);
  (*trial.mutable_parameters())["layers"] =
      MakeValue(std::vector<std::string>{"a,b", "c"});
  (*trial.mutable_context())["rows"] = MakeValue(5);
  (*trial.mutable_metrics())["qps"] = 12.5;
  trial.mutable_suggestion()->set_source(v1::Trial::SEARCH);
  trial.mutable_create_time()->set_seconds(1'700'000'000);
  return trial;
}

TEST(TrialTablesTest, AnExportIsReadAsTheSameMeasurement) {
  const v1::Study study = ExampleStudy();
  v1::Trial failed = ExampleTrial();
  failed.set_state(v1::Trial::INFEASIBLE);
  failed.set_reason(v1::Trial::OUT_OF_MEMORY);
  v1::Trial lost = ExampleTrial();
  lost.set_state(v1::Trial::EXPIRED);
  const std::vector<v1::Trial> trials = {ExampleTrial(), failed, lost};
  std::string csv = FormatCsvRow(ExportHeaders(study));
  std::string json_lines;
  for (const v1::Trial& trial : trials) {
    csv += FormatCsvRow(ExportRow(study, trial));
    json_lines += TrialToJson(trial).dump() + "\n";
  }
  for (const absl::StatusOr<ImportedTrials>& imported :
       {ImportCsv(study, csv, "status"), ImportJsonLines(study, json_lines)}) {
    ASSERT_THAT(imported, IsOk());
    ASSERT_THAT(imported->trials, SizeIs(2));
    EXPECT_EQ(imported->skipped, 1);
    EXPECT_THAT(imported->trials[0], EqualsProto(R"pb(
                  state: SUCCEEDED
                  parameters {
                    key: "batch"
                    value { int64_value: 8 }
                  }
                  parameters {
                    key: "layers"
                    value {
                      list_value {
                        values { string_value: "a,b" }
                        values { string_value: "c" }
                      }
                    }
                  }
                  context {
                    key: "rows"
                    value { int64_value: 5 }
                  }
                  metrics { key: "qps" value: 12.5 })pb"));
    EXPECT_EQ(imported->trials[1].reason(), v1::Trial::OUT_OF_MEMORY);
  }
}

TEST(TrialTablesTest, ATableOfSomebodyElseIsImported) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const ImportedTrials imported,
      ImportCsv(ExampleStudy(),
                "batch,rows,qps,result\n8,5,100,ok\n16,5,,oom\n32,5,nan,fail\n",
                "result"));
  ASSERT_THAT(imported.trials, SizeIs(3));
  EXPECT_EQ(imported.trials[0].metrics().at("qps"), 100);
  EXPECT_EQ(imported.trials[1].reason(), v1::Trial::OUT_OF_MEMORY);
  EXPECT_EQ(imported.trials[2].reason(), v1::Trial::CRASH);
  EXPECT_EQ(imported.trials[2].metrics_size(), 0);
  EXPECT_THAT(imported.lines, ElementsAre(2, 3, 4));
}

TEST(TrialTablesTest, MistakesInAnImportAreToldWithTheirLine) {
  const v1::Study study = ExampleStudy();
  const auto csv = [&](const char* text) {
    return std::string(ImportCsv(study, text, "status").status().message());
  };
  EXPECT_THAT(csv(""), HasSubstr("line 1: no header"));
  EXPECT_THAT(csv("batsh\n1\n"), HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(csv("batch,batch\n1,1\n"), HasSubstr("twice"));
  EXPECT_THAT(csv("batch,qps\n1,2\n1\n"),
              HasSubstr("line 3: has 1 cells instead of 2"));
  EXPECT_THAT(csv("batch,qps\nx,2\n"),
              HasSubstr("line 2: batch: 'x' is not an integer"));
  EXPECT_THAT(csv("batch,qps\n1,fast\n"),
              HasSubstr("line 2: qps: 'fast' is not a number"));
  EXPECT_THAT(csv("batch,status\n1,great\n"),
              HasSubstr("line 2: status: 'great' is not an outcome"));
  const auto lines = [&](const char* text) {
    return std::string(ImportJsonLines(study, text).status().message());
  };
  EXPECT_THAT(lines("{\n"), HasSubstr("line 1: is not JSON"));
  EXPECT_THAT(lines("\n[]\n"), HasSubstr("line 2: is not a JSON object"));
  EXPECT_THAT(lines("{\"x\": 1}\n"), HasSubstr("unknown key 'x'"));
  EXPECT_THAT(lines("{\"metrics\": {\"qps\": \"1\"}}\n"),
              HasSubstr("metrics.qps: is not a number"));
}

}  // namespace
}  // namespace cubicml
