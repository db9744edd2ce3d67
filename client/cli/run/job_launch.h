// SPDX-License-Identifier: Apache-2.0
//
// One job from its configuration to the evidence of how it went: its files and
// environment before, its output while it runs, its metrics file after.

#ifndef CUBICML_CLIENT_CLI_RUN_JOB_LAUNCH_H_
#define CUBICML_CLIENT_CLI_RUN_JOB_LAUNCH_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client/cli/command_session.h"
#include "client/cli/run/command_template.h"
#include "client/cli/run/outcome.h"
#include "client/cli/run/run_command.h"
#include "client/cli/run/signal_relay.h"

namespace cubicml {

struct JobLaunch {
  const RunOptions* options = nullptr;
  const CommandTemplate* command = nullptr;
  const OutputPatterns* patterns = nullptr;
  std::string server;
  std::string study_id;
  Environment environment;
  std::function<bool()> should_stop;  // optional
};

// `values.words` may hold "trial"; the other words are filled in. The files are
// made in $TMPDIR, else in /tmp; where neither can be written the job runs
// without them. NOT_FOUND and PERMISSION_DENIED as RunJob(); INTERNAL, too,
// when the command names a file that cannot be made.
absl::StatusOr<JobEvidence> LaunchJob(const JobLaunch& launch,
                                      TemplateValues values,
                                      SignalRelay* signals, const Clock* clock);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_JOB_LAUNCH_H_
