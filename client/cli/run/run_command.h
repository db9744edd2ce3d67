// SPDX-License-Identifier: Apache-2.0
//
// cubicml run: one job, or many, with configurations from the service. The job
// always runs: on the baseline when the service is away (docs/cli.md).

#ifndef CUBICML_CLIENT_CLI_RUN_RUN_COMMAND_H_
#define CUBICML_CLIENT_CLI_RUN_RUN_COMMAND_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/command_session.h"
#include "client/cli/run/output_scanner.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

struct RunOptions {
  std::string study;
  std::vector<std::string> command;
  std::vector<std::string> context;           // NAME=VALUE
  std::vector<std::string> fixed_parameters;  // NAME=VALUE
  std::vector<std::string> baseline;          // NAME=VALUE
  std::vector<std::string> labels;            // NAME=VALUE
  std::string client_id;
  std::vector<std::string> metric_expressions;
  std::string metrics_file;
  Aggregate aggregate = Aggregate::kLast;
  absl::Duration timeout = absl::InfiniteDuration();
  absl::Duration grace = absl::Seconds(30);
  // How long a job waits for the service before it starts, in all, and once
  // more with its result.
  absl::Duration server_wait = absl::Seconds(10);
  std::set<int> out_of_memory_exit_codes;
  int trials = 1;
  v1::SuggestTrialsRequest::Mode mode = v1::SuggestTrialsRequest::EXPLORE;
  bool quiet = false;
};

// Returns the exit code: the job's, or that of docs/cli.md when no job ran.
absl::StatusOr<int> Run(const GlobalOptions& global, const RunOptions& options);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_RUN_COMMAND_H_
