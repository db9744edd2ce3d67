// SPDX-License-Identifier: Apache-2.0
//
// One gRPC channel and the way in which every call goes over it: with a
// deadline, again when that may help, with errors that name the server. Shared
// by a TuningClient and the TrialHandles that it made.

#ifndef CUBICML_CLIENT_SERVER_CONNECTION_H_
#define CUBICML_CLIENT_SERVER_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/retry.h"
#include "cubicml/client/tuning_client_options.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"

namespace cubicml {

// Thread-safe.
class ServerConnection {
 public:
  using Stub = v1::TuningService::StubInterface;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);

  explicit ServerConnection(TuningClientOptions options);

  // Carries out a call with its attempts. `timeout` zero means the client's;
  // an attempt takes at most `attempt_timeout`, zero meaning the client's.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      absl::string_view name, Method<Request, Response> method,
      const Request& request, Repeatable repeatable, absl::Duration timeout,
      absl::Duration attempt_timeout = absl::ZeroDuration()) {
    Response response;
    const absl::Status status =
        Repeat(repeatable, timeout, attempt_timeout, [&](absl::Duration limit) {
          response.Clear();
          return Once(name, method, request, limit, &response);
        });
    if (!status.ok()) return status;
    return response;
  }

  // One attempt.
  template <typename Request, typename Response>
  absl::Status Once(absl::string_view name, Method<Request, Response> method,
                    const Request& request, absl::Duration timeout,
                    Response* response) {
    grpc::ClientContext context;
    Prepare(timeout, &context);
    return Convert((stub_.get()->*method)(&context, request, response), name);
  }

  // Calls `attempt` as often as the options and `repeatable` allow.
  absl::Status Repeat(
      Repeatable repeatable, absl::Duration timeout,
      absl::Duration attempt_timeout,
      const std::function<absl::Status(absl::Duration timeout)>& attempt);

  // UNAVAILABLE when there is no connection within the time.
  absl::Status WaitForConnection(absl::Duration timeout);

  void Prepare(absl::Duration timeout, grpc::ClientContext* context) const;
  absl::Status Convert(const grpc::Status& status,
                       absl::string_view call) const;
  absl::Duration TimeoutOr(absl::Duration timeout) const;

  Stub& stub() { return *stub_; }
  Waiter& waiter() { return *waiter_; }
  const TuningClientOptions& options() const { return options_; }

 private:
  const TuningClientOptions options_;
  const std::unique_ptr<Waiter> waiter_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_SERVER_CONNECTION_H_
