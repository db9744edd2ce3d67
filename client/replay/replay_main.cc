// SPDX-License-Identifier: Apache-2.0
//
// cubicml-replay: what would the tuner have found on our history? Runs it
// against a table of measured configurations instead of jobs. docs/replay.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/replay/csv_file.h"
#include "client/replay/measured_table.h"
#include "client/replay/replay_plan.h"
#include "client/replay/replay_report.h"
#include "client/replay/table_spec.h"

namespace cubicml {
namespace {

struct Arguments {
  std::string csv;
  std::string index;
  std::vector<std::string> tables;
  TableSpec spec;
  std::string direction = "max";
  ReplayPlan plan;
  std::vector<int> checkpoints = {10, 20, 50, 100};
  std::string output;
  std::string format = "table";
};

void AddTableOptions(CLI::App* app, Arguments* arguments) {
  app->add_option("csv", arguments->csv, "Table of measured configurations")
      ->option_text("TABLE.csv");
  app->add_option("--index", arguments->index,
                  "JSON file that says what the columns of tables are");
  app->add_option("--table", arguments->tables, "Table of the index [all]")
      ->delimiter(',');
  app->add_option("--params", arguments->spec.params, "Columns to tune")
      ->delimiter(',');
  app->add_option("--context", arguments->spec.context,
                  "Columns that say what the job is")
      ->delimiter(',');
  app->add_option("--objective", arguments->spec.objective,
                  "Column that was measured");
  app->add_option("--direction", arguments->direction, "max or min [max]")
      ->check(CLI::IsMember({"max", "min"}));
  app->add_option("--status", arguments->spec.status,
                  "Column that says which rows failed");
  app->add_option("--ok-value", arguments->spec.ok_value,
                  "Status of the rows that did not fail [ok]");
}

void AddPlanOptions(CLI::App* app, Arguments* arguments) {
  ReplayPlan& plan = arguments->plan;
  plan.workers = std::max(1U, std::thread::hardware_concurrency());
  app->add_option("--searchers", plan.searchers,
                  "Of default, random, reinforce, exhaustive [default,random]")
      ->delimiter(',');
  app->add_option("--seeds", plan.seeds, "Seeds per searcher and context [20]")
      ->check(CLI::Range(1, 10'000));
  app->add_option("--trials", plan.trials, "Trials per run [100]")
      ->check(CLI::Range(1, 100'000));
  app->add_option("--checkpoints", arguments->checkpoints,
                  "Trials after which to look, of those that runs reach "
                  "[10,20,50,100]")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000));
  app->add_option("--jobs", plan.jobs, "Jobs in flight at a time [1]")
      ->check(CLI::Range(1, 1'000));
  app->add_option("--retrain-every", plan.retrain_every,
                  "Trials between two trainings in this process [1]")
      ->check(CLI::Range(1, 100'000));
  app->add_option("--min-configs", plan.min_configurations,
                  "Leave out contexts with fewer configurations [30]")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--server", plan.server,
                  "Address of a running server [in this process]");
  app->add_option("--workers", plan.workers,
                  "Runs at a time [one for each processor]")
      ->check(CLI::Range(1, 256));
  app->add_option("--output", arguments->output, "Write every trial as CSV");
  app->add_option("-o,--format", arguments->format,
                  "table, json, csv or markdown [table]")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown"}));
}

absl::StatusOr<std::vector<TableSpec>> ListSpecs(const Arguments& arguments) {
  if (!arguments.index.empty()) {
    if (!arguments.csv.empty()) {
      return absl::InvalidArgumentError(
          "give either TABLE.csv or --index, not both");
    }
    return ReadTableIndex(arguments.index, arguments.tables);
  }
  if (arguments.csv.empty()) {
    return absl::InvalidArgumentError("give TABLE.csv or --index");
  }
  if (arguments.spec.params.empty() || arguments.spec.objective.empty()) {
    return absl::InvalidArgumentError(
        "TABLE.csv needs --params and --objective");
  }
  TableSpec spec = arguments.spec;
  spec.name = arguments.csv;
  spec.path = arguments.csv;
  spec.maximize = arguments.direction == "max";
  return std::vector<TableSpec>{spec};
}

// One line on standard error, rewritten at most twice a second.
class Progress {
 public:
  void operator()(size_t done, size_t all) {
    const absl::Duration now = clock_.Elapsed();
    if (done < all && now - last_ < absl::Milliseconds(500)) return;
    last_ = now;
    std::cerr << "\r" << done << "/" << all << " runs"
              << (done == all ? "\n" : "") << std::flush;
  }

 private:
  SystemClock clock_;
  absl::Duration last_;
};

absl::Status WriteTrials(const std::string& path,
                         const std::vector<ReplayResult>& results) {
  std::ofstream stream(path, std::ios::binary);
  stream << FormatTrials(results);
  stream.close();
  if (!stream) {
    return absl::InternalError(absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

absl::Status Replay(const Arguments& arguments) {
  CUBICML_ASSIGN_OR_RETURN(const ReportFormat format,
                           ParseReportFormat(arguments.format));
  CUBICML_ASSIGN_OR_RETURN(const std::vector<TableSpec> specs,
                           ListSpecs(arguments));
  std::vector<MeasuredTable> tables;
  for (const TableSpec& spec : specs) {
    CUBICML_ASSIGN_OR_RETURN(const CsvFile file, ReadCsv(spec.path));
    CUBICML_ASSIGN_OR_RETURN(MeasuredTable table,
                             BuildMeasuredTable(file, spec));
    tables.push_back(std::move(table));
  }
  Progress progress;
  CUBICML_ASSIGN_OR_RETURN(
      const std::vector<ReplayResult> results,
      RunPlan(arguments.plan, tables,
              [&](size_t done, size_t all) { progress(done, all); }));
  if (!arguments.output.empty()) {
    CUBICML_RETURN_IF_ERROR(WriteTrials(arguments.output, results));
  }
  const std::vector<int> checkpoints =
      KeepReached(arguments.checkpoints, arguments.plan.trials);
  std::cout << FormatReport(Summarize(results, checkpoints), checkpoints,
                            format);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Replays the tuner against a table of measured configurations.");
  AddTableOptions(&app, &arguments);
  AddPlanOptions(&app, &arguments);
  CLI11_PARSE(app, argc, argv);
  // What a study says of itself (a model was refused) is not of interest a
  // thousand times.
  SetLogLevel(LogLevel::kError);
  const absl::Status status = Replay(arguments);
  if (status.ok()) return 0;
  std::cerr << "cubicml-replay: " << status.message() << "\n";
  return status.code() == absl::StatusCode::kInvalidArgument ||
                 status.code() == absl::StatusCode::kNotFound
             ? 2
             : 1;
}

}  // namespace
}  // namespace cubicml

int main(int argc, char** argv) { return cubicml::Main(argc, argv); }
