// SPDX-License-Identifier: Apache-2.0
//
// Runs a job as a child process in a process group of its own, passes its
// output through byte for byte, and ends all of it when it must.

#ifndef CUBICML_CLIENT_CLI_RUN_JOB_H_
#define CUBICML_CLIENT_CLI_RUN_JOB_H_

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "client/cli/run/signal_relay.h"

namespace cubicml {

struct JobSpec {
  std::vector<std::string> command;
  // NAME=VALUE; all of the job's environment.
  std::vector<std::string> environment;
  // How long it may run.
  absl::Duration timeout = absl::InfiniteDuration();
  // Between SIGTERM and SIGKILL.
  absl::Duration grace = absl::Seconds(30);
  // Where its output goes.
  int out = 1;
  int err = 2;
  // Sees the output as it passes. `is_error`: it is of standard error.
  std::function<void(bool is_error, absl::string_view chunk)> on_output;
  // Asked several times a second: has the service told to stop?
  std::function<bool()> should_stop;
};

// How a job ended.
struct JobEnd {
  bool by_signal = false;
  int code = 0;  // exit code, or number of the signal
  bool timed_out = false;
  bool told_to_stop = false;    // by should_stop
  int interrupted_by = 0;       // the signal that we were told to stop with
  bool by_sent_signal = false;  // by another one that was sent on to it
  bool killed = false;          // we sent SIGKILL, after the signal to stop

  // As a shell tells it: the exit code, or 128 + the signal. Of a job that we
  // killed because it did not stop, the signal that it was to stop with.
  int ExitCode() const {
    if (by_signal && code == SIGKILL && killed && interrupted_by != 0) {
      return 128 + interrupted_by;
    }
    return by_signal ? 128 + code : code;
  }
};

// Runs the job to its end. Signals that `signals` catches are sent on to the
// job's process group; a second one to stop kills it. What the job leaves
// running in its process group is ended as well. NOT_FOUND when there is no
// such program, PERMISSION_DENIED when it cannot be executed, INTERNAL when the
// system has no room for a process.
absl::StatusOr<JobEnd> RunJob(const JobSpec& spec, SignalRelay* signals,
                              const Clock* clock);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_JOB_H_
