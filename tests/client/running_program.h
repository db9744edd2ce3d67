// SPDX-License-Identifier: Apache-2.0
//
// A child process whose output a test waits for.

#ifndef CUBICML_TESTS_CLIENT_RUNNING_PROGRAM_H_
#define CUBICML_TESTS_CLIENT_RUNNING_PROGRAM_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace cubicml {

// Not thread-safe.
class RunningProgram {
 public:
  // `environment` is set beside this process's. `input` is its standard input.
  RunningProgram(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& environment,
                 const std::string& input = "");
  // Kills it when it still runs.
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Waits until the text has appeared, or the program has ended.
  void AwaitOut(const std::string& text);
  void AwaitErr(const std::string& text);
  void Signal(int signal);
  // Waits for its end. The exit code, or 128 + the signal.
  int Wait();

  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  // Reads what there is, waiting for it. False when both streams have ended.
  bool ReadSome();

  pid_t pid_ = -1;
  int out_end_ = -1;
  int err_end_ = -1;
  std::string out_;
  std::string err_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_CLIENT_RUNNING_PROGRAM_H_
