// SPDX-License-Identifier: Apache-2.0
//
// A replay against the real server.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/replay/csv_file.h"
#include "client/replay/measured_table.h"
#include "client/replay/replay_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::SizeIs;

// One context of 40 configurations, of which a few fail.
MeasuredTable MakeTable() {
  std::string csv = "model,tp,batch,status,qps\n";
  for (const int tp : {1, 2, 4, 8}) {
    for (int batch = 1; batch <= 10; ++batch) {
      const bool fits = batch <= 6 * tp;
      absl::StrAppend(&csv, "a,", tp, ",", batch, ",", fits ? "ok" : "oom", ",",
                      100 + tp * batch - batch * batch, "\n");
    }
  }
  TableSpec spec;
  spec.name = "t";
  spec.params = {"tp", "batch"};
  spec.context = {"model"};
  spec.objective = "qps";
  spec.status = "status";
  auto file = ParseCsv("t.csv", csv);
  EXPECT_THAT(file.status(), IsOk());
  auto table = BuildMeasuredTable(*file, spec);
  EXPECT_THAT(table.status(), IsOk());
  return *std::move(table);
}

TEST(ReplayServerTest, RunsSeveralJobsAndLeavesNothingBehind) {
  TempDir dir;
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const auto server, ServerProcess::Start({.db_path = dir.PathOf("test.db"),
                                               .log_path = dir.PathOf("log")}));
  const std::vector<MeasuredTable> tables = {MakeTable()};
  ReplayPlan plan;
  plan.seeds = 1;
  plan.trials = 14;
  plan.jobs = 3;
  plan.server = server->address();
  const auto results = RunPlan(plan, tables, [](size_t, size_t) {});
  ASSERT_THAT(results.status(), IsOk());
  ASSERT_THAT(*results, SizeIs(2));  // default and random
  for (const ReplayResult& result : *results) {
    std::set<size_t> different;
    for (const ReplayedTrial& trial : result.trials) {
      different.insert(trial.configuration);
    }
    EXPECT_THAT(different, SizeIs(14)) << result.searcher;
    EXPECT_LT(result.trials.back().percent_below_best, 100.0);
  }
  grpc::ClientContext context;
  v1::ListStudiesResponse studies;
  const grpc::Status listed =
      server->NewStub()->ListStudies(&context, {}, &studies);
  ASSERT_TRUE(listed.ok()) << listed.error_message();
  EXPECT_EQ(studies.studies_size(), 0);
}

}  // namespace
}  // namespace cubicml
