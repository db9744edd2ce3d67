// SPDX-License-Identifier: Apache-2.0
//
// A running CubicML server: the domain, its workers, its ports, its background
// training, started and stopped in the right order. server/main.cc wraps a
// process around one; tests and benchmarks start several.

#ifndef CUBICML_SERVER_RPC_SERVER_H_
#define CUBICML_SERVER_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/executor.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "predictor/trainer.h"
#include "server/core/study_service.h"
#include "server/core/training_loop.h"
#include "server/rpc/health_monitor.h"
#include "server/rpc/metrics.h"
#include "server/rpc/metrics_endpoint.h"
#include "server/rpc/server_options.h"
#include "storage/study_store.h"

namespace cubicml {

// What the server is made of, chosen by main.
struct ServerParts {
  std::unique_ptr<Clock> clock;
  // The store may count commits into it.
  std::unique_ptr<ServerMetrics> metrics;
  std::unique_ptr<StudyStore> store;
  std::unique_ptr<Trainer> trainer;
};

// Thread-safe.
class Server {
 public:
  // Calls are served, and health says so, when this returns.
  // INVALID_ARGUMENT     an option
  // UNAVAILABLE          a port is taken
  // FAILED_PRECONDITION  the environment (metrics_endpoint.h)
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, ServerParts parts);
  // Drains, if that has not been done.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  int metrics_port() const;  // 0: none

  // Stops in order: refuse new calls, finish those under way (at most
  // drain_timeout), stop training, close the store. Logs what each step took.
  // Once.
  void Drain();

 private:
  Server(const ServerOptions& options, ServerParts parts);
  absl::Status StartService();
  absl::Status StartListening();
  absl::Status StartMetricsEndpoint();
  absl::Status WritePortFile() const;

  const ServerOptions options_;
  int port_ = 0;

  // In the order of dependence: each uses those above it, so that the reverse,
  // which is how members end, is the order in which Drain() stops them.
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<ServerMetrics> metrics_;
  std::unique_ptr<StudyStore> store_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<StudyService> service_;
  std::unique_ptr<TrainingLoop> training_;
  std::unique_ptr<ThreadPool> workers_;
  std::unique_ptr<grpc::Service> rpc_service_;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::unique_ptr<HealthMonitor> health_;
  std::unique_ptr<MetricsEndpoint> metrics_endpoint_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_SERVER_H_
