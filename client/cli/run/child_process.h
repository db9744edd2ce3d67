// SPDX-License-Identifier: Apache-2.0
//
// fork and exec, with the error of exec told to the parent.

#ifndef CUBICML_CLIENT_CLI_RUN_CHILD_PROCESS_H_
#define CUBICML_CLIENT_CLI_RUN_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cubicml {

// A running child, the leader of its own process group, and the ends of the
// pipes that are its standard output and error. Not thread-safe.
class ChildProcess {
 public:
  // Standard input is ours, or /dev/null when ours is a terminal: a process
  // group in the background would be stopped when it reads. Errors as RunJob().
  // On Linux the child gets SIGTERM when the calling thread is gone, however
  // that ends: call it from the main thread.
  static absl::StatusOr<ChildProcess> Start(
      const std::vector<std::string>& command,
      const std::vector<std::string>& environment);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Closes the pipes; the process must have been waited for.
  ~ChildProcess();

  int out() const { return out_; }
  int err() const { return err_; }
  void CloseOut();
  void CloseErr();

  // The status of waitpid() once it has ended. Does not wait.
  std::optional<int> Poll();
  // To all of the process group. Does nothing when nobody is left.
  void SignalGroup(int signal) const;
  // Is anybody left in the process group? REQUIRES: Poll() has told the end.
  // Reaps those of the group that were left to this process.
  bool HasGroup() const;

 private:
  ChildProcess(pid_t pid, int out, int err) : pid_(pid), out_(out), err_(err) {}
  pid_t pid_;
  int out_;
  int err_;
  std::optional<int> status_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_CHILD_PROCESS_H_
