// SPDX-License-Identifier: Apache-2.0
//
// The signals that tell `cubicml run` to stop, as events that can be waited
// for beside the output of the job.

#ifndef CUBICML_CLIENT_CLI_RUN_SIGNAL_RELAY_H_
#define CUBICML_CLIENT_CLI_RUN_SIGNAL_RELAY_H_

#include <signal.h>

#include <map>
#include <vector>

namespace cubicml {

// One at a time in a process. Catches SIGINT, SIGTERM, SIGHUP, SIGQUIT,
// SIGUSR1, SIGUSR2 and SIGCHLD, unless they are ignored (nohup), and ignores
// SIGPIPE; the destructor puts everything back.
class SignalRelay {
 public:
  SignalRelay();
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // While nothing is held, a signal to stop ends the process at once, with
  // 128 + its number.
  void SetHolding(bool holding);

  // Becomes readable when signals have come.
  int descriptor() const { return read_end_; }
  // The signals that came, without SIGCHLD. Does not wait.
  std::vector<int> Take();

  // Does the signal mean to stop?
  static bool IsStop(int signal);

 private:
  int read_end_ = -1;
  int write_end_ = -1;
  std::map<int, struct sigaction> old_actions_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_SIGNAL_RELAY_H_
