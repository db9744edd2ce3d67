// SPDX-License-Identifier: Apache-2.0
//
// Many runs as the few figures that are compared.

#ifndef CUBICML_CLIENT_REPLAY_REPLAY_REPORT_H_
#define CUBICML_CLIENT_REPLAY_REPLAY_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/replay/measured_table.h"
#include "client/replay/replay_run.h"

namespace cubicml {

// One run, and where it belongs. The tables outlive it.
struct ReplayResult {
  const MeasuredTable* table = nullptr;
  const MeasuredProblem* problem = nullptr;
  std::string searcher;
  uint64_t seed = 0;
  std::vector<ReplayedTrial> trials;
};

// Of one searcher on one table, or on all ("overall").
struct ReplaySummary {
  std::string table;
  std::string searcher;
  size_t problems = 0;
  size_t runs = 0;
  // Percent below the best at each checkpoint, over contexts and seeds.
  // Overall, every table counts the same in the mean.
  std::vector<double> mean;
  std::vector<double> worst;
  double failed_share = 0.0;  // of the trials
};

enum class ReportFormat { kTable, kJson, kCsv, kMarkdown };

// INVALID_ARGUMENT for another word.
absl::StatusOr<ReportFormat> ParseReportFormat(absl::string_view word);

// Those that runs of so many trials reach; the end of the runs when none is.
std::vector<int> KeepReached(std::vector<int> checkpoints, int trials);

// In the order in which tables and searchers first appear; overall last, when
// there are several tables.
std::vector<ReplaySummary> Summarize(const std::vector<ReplayResult>& results,
                                     const std::vector<int>& checkpoints);

std::string FormatReport(const std::vector<ReplaySummary>& summaries,
                         const std::vector<int>& checkpoints,
                         ReportFormat format);

// Every trial as CSV, with a header.
std::string FormatTrials(const std::vector<ReplayResult>& results);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_REPLAY_REPORT_H_
