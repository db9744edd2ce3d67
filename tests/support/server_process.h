// SPDX-License-Identifier: Apache-2.0
//
// The real server program as a child process, to be talked to over its socket
// and to be killed.

#ifndef CUBICML_TESTS_SUPPORT_SERVER_PROCESS_H_
#define CUBICML_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "grpcpp/channel.h"

namespace cubicml {

// Kills the process when it goes out of scope.
class ServerProcess {
 public:
  struct Options {
    std::string db_path;
    // More flags than the ports' and the database's.
    std::vector<std::string> flags = {};
    std::string log_path = {};  // empty: our standard error
    int port = 0;
  };

  // Returns when calls are served. UNAVAILABLE when the process ended instead.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const Options& options);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  int port() const { return port_; }
  int metrics_port() const { return metrics_port_; }
  std::string address() const;

  // A connection of its own, not shared with others.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::TuningService::Stub> NewStub() const;

  void Signal(int signal_number) const;
  // Waits for the end: the exit status, or minus the signal's number.
  int Wait();
  // kill -9, and waits.
  void Kill();

 private:
  ServerProcess() = default;

  pid_t pid_ = -1;
  int port_ = 0;
  int metrics_port_ = 0;
  bool ended_ = false;
  int exit_ = 0;
};

// Runs the server program with these flags to its end. Its output comes back
// in `output`.
int RunServerProgram(const std::vector<std::string>& flags,
                     std::string* output);

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_SERVER_PROCESS_H_
