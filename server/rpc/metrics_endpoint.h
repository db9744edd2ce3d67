// SPDX-License-Identifier: Apache-2.0
//
// HTTP for operators: /metrics (Prometheus), /healthz (the process answers),
// /readyz (calls are served).

#ifndef CUBICML_SERVER_RPC_METRICS_ENDPOINT_H_
#define CUBICML_SERVER_RPC_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct mg_connection;
struct mg_context;

namespace cubicml {

// Serves from its creation to its end, on two threads of the HTTP library.
class MetricsEndpoint {
 public:
  struct Content {
    std::function<std::string()> metrics;     // text to be scraped
    std::function<absl::Status()> readiness;  // OK: 200, otherwise 503
  };

  // `address` is "host:port"; with port 0 the system chooses one.
  // UNAVAILABLE          the address cannot be listened on
  // FAILED_PRECONDITION  the process cannot start the library's threads; the
  //                      message says which library is in the way
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Create(
      const std::string& address, Content content);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  int port() const;

 private:
  explicit MetricsEndpoint(Content content);

  static int ServeMetrics(mg_connection* connection, void* self);
  static int ServeHealth(mg_connection* connection, void* self);
  static int ServeReadiness(mg_connection* connection, void* self);

  const Content content_;
  mg_context* context_ = nullptr;  // owned
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_METRICS_ENDPOINT_H_
