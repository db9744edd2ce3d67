// SPDX-License-Identifier: Apache-2.0
//
// What the end of a job means for its trial. Pure.

#ifndef CUBICML_CLIENT_CLI_RUN_OUTCOME_H_
#define CUBICML_CLIENT_CLI_RUN_OUTCOME_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/run/job.h"
#include "client/cli/run/output_scanner.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Everything that was learned from one job.
struct JobEvidence {
  JobEnd end;
  Observations output;
  // Of the metrics file; they count before those of the output.
  std::map<std::string, MetricSeries> file_metrics;
  std::string metrics_file_error;         // why it could not be read
  bool kernel_killed_for_memory = false;  // somebody on the machine
  bool group_killed_for_memory = false;   // somebody in the control group
  std::set<int> out_of_memory_exit_codes;
};

struct Outcome {
  v1::Trial::State state = v1::Trial::SUCCEEDED;
  v1::Trial::Reason reason = v1::Trial::REASON_UNSPECIFIED;
  std::string detail;
  std::map<std::string, double> metrics;
};

// In this order: interrupted -> ABANDONED; told to stop by the service ->
// SUCCEEDED when every objective is there, else ABANDONED; timed out ->
// TIMEOUT; ended badly -> OUT_OF_MEMORY with evidence of that, ABANDONED after
// a signal to stop from somebody else or one that was sent on, else CRASH;
// ended well -> SUCCEEDED with the declared metrics, or NO_MEASUREMENT when an
// objective is missing.
Outcome JudgeJob(const v1::Study& study, const JobEvidence& evidence,
                 Aggregate aggregate);

// A metrics file: a JSON object of numbers, an array of such objects, or one
// on each line. INVALID_ARGUMENT with the line.
absl::StatusOr<std::map<std::string, MetricSeries>> ParseMetricsFile(
    absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_OUTCOME_H_
