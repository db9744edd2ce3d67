// SPDX-License-Identifier: Apache-2.0
//
// cubicml suggest | heartbeat | complete | cancel | best | predict | trials
// list | trials get. Each returns the exit code, or the error that decides it.

#ifndef CUBICML_CLIENT_CLI_TRIAL_COMMANDS_H_
#define CUBICML_CLIENT_CLI_TRIAL_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command_session.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

struct SuggestOptions {
  std::string study;
  int count = 1;
  std::vector<std::string> context;           // NAME=VALUE
  std::vector<std::string> fixed_parameters;  // NAME=VALUE
  std::string client_id;
  v1::SuggestTrialsRequest::Mode mode = v1::SuggestTrialsRequest::EXPLORE;
  std::vector<std::string> labels;  // NAME=VALUE
};
absl::StatusOr<int> Suggest(CommandSession* session,
                            const SuggestOptions& options);

struct HeartbeatOptions {
  std::string trial;
  std::string client_id;
  int64_t step = 0;
  std::vector<std::string> metrics;  // NAME=NUMBER
};
absl::StatusOr<int> Heartbeat(CommandSession* session,
                              const HeartbeatOptions& options);

struct CompleteOptions {
  std::string trial;
  std::string client_id;
  std::vector<std::string> metrics;  // NAME=NUMBER
  std::string state = "succeeded";
  std::string reason;
  std::string detail;
};
absl::StatusOr<int> Complete(CommandSession* session,
                             const CompleteOptions& options);

absl::StatusOr<int> Cancel(CommandSession* session, const std::string& trial);

struct BestOptions {
  std::string study;
  std::vector<std::string> context;  // NAME=VALUE
  int limit = 0;                     // 0: the service's
  bool compare_baseline = false;     // what differs, instead of the trials
};
absl::StatusOr<int> Best(CommandSession* session, const BestOptions& options);

struct PredictOptions {
  std::string study;
  std::vector<std::string> parameters;  // NAME=VALUE
  std::vector<std::string> context;     // NAME=VALUE
};
absl::StatusOr<int> Predict(CommandSession* session,
                            const PredictOptions& options);

struct ListTrialsOptions {
  std::string study;
  std::string filter;
  std::string order_by;
  int limit = 0;  // 0: all
};
absl::StatusOr<int> ListTrials(CommandSession* session,
                               const ListTrialsOptions& options);
absl::StatusOr<int> GetTrial(CommandSession* session, const std::string& trial);

// NAME=NUMBER words. INVALID_ARGUMENT for what is not a finite number.
absl::StatusOr<std::map<std::string, double>> ParseMetrics(
    const std::vector<std::string>& assignments);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_TRIAL_COMMANDS_H_
