// SPDX-License-Identifier: Apache-2.0
//
// The jobs of one `cubicml run`, one after the other.

#ifndef CUBICML_CLIENT_CLI_RUN_JOB_SESSION_H_
#define CUBICML_CLIENT_CLI_RUN_JOB_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client/cli/command_session.h"
#include "client/cli/run/command_template.h"
#include "client/cli/run/outcome.h"
#include "client/cli/run/result_spool.h"
#include "client/cli/run/run_command.h"
#include "client/cli/run/signal_relay.h"
#include "client/cli/run/study_cache.h"
#include "client/cli/run/trial_tally.h"
#include "cubicml/client/tuning_client.h"

namespace cubicml {

// Not thread-safe.
class JobSession {
 public:
  JobSession(CommandSession session, const RunOptions* options,
             CommandTemplate command, std::string cache_folder);

  absl::StatusOr<int> Run();

  // Did Run() end because the job's program could not be started?
  bool failed_to_start() const { return failed_to_start_; }
  void Say(absl::string_view message) const { session_.Say(message); }

 private:
  // A job that has ended.
  struct FinishedJob {
    JobEvidence evidence;
    Outcome outcome;
  };

  bool ManyTrials() const { return options_.trials != 1; }
  // What the baseline has measured first in the context of the job.
  std::optional<double> FindBaselineObjective(const v1::Trial& job);
  absl::StatusOr<int> RunTrials();
  absl::StatusOr<int> RunOneTrial(TrialHandle trial);
  // Until `deadline`, a time of clock_.
  absl::StatusOr<TrialHandle> StartTrial(v1::SuggestTrialsRequest::Mode mode,
                                         absl::Duration deadline);
  // As above, once the results that are kept have been delivered. UNAVAILABLE,
  // too, when the service still waits for one of them.
  absl::StatusOr<TrialHandle> NextTrial(absl::Duration deadline);
  // The service gave no trial because of `why`: the best known, or baseline.
  absl::StatusOr<int> RunWithoutTrial(const absl::Status& why);
  absl::StatusOr<int> RunBaseline(const absl::Status& why);

  absl::Status Prepare();
  absl::StatusOr<TemplateValues> BaselineValues();
  TemplateValues TrialValues(const v1::Trial& trial) const;
  absl::StatusOr<FinishedJob> RunJobWith(TemplateValues values,
                                         const TrialHandle* trial);
  void Report(TrialHandle* trial, const Outcome& outcome);
  // Parameters that only the job's environment has: perhaps forgotten.
  void SayLeftOut() const;
  void DeliverSpooled(absl::Duration deadline);
  // Of all trials: 0 when one of many has succeeded.
  int ExitCode() const;
  void SayOutcome(const v1::Trial& trial, const Outcome& outcome);

  CommandSession session_;
  const RunOptions& options_;
  const CommandTemplate command_;
  const SystemClock clock_;
  const StudyCache cache_;
  const ResultSpool spool_;
  SignalRelay signals_;

  // Of the service, or remembered; without a name when nothing is known.
  v1::Study study_;
  std::string study_name_;
  Values context_;
  std::optional<double> baseline_objective_;  // once it is known
  Values fixed_parameters_;
  OutputPatterns patterns_;
  // What the first job waits for is over by then.
  absl::Duration first_deadline_;
  bool failed_to_start_ = false;
  TrialTally tally_;
  int last_exit_code_ = 0;
  int interrupted_by_ = 0;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_JOB_SESSION_H_
