// SPDX-License-Identifier: Apache-2.0
//
// The threading policy of unary calls (docs/decisions/0001): gRPC's thread only
// queues the call; a worker parses it, carries it out and answers. A call that
// nobody waits for any more is not carried out, and a full queue is answered at
// once.

#ifndef CUBICML_SERVER_RPC_UNARY_DISPATCH_H_
#define CUBICML_SERVER_RPC_UNARY_DISPATCH_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/rpc_environment.h"
#include "server/rpc/wire_message.h"

namespace cubicml {

// One unary call; `Handler` is a callable from (const Request&) to
// absl::StatusOr<Response>. Request and response stay valid until the reactor
// is done, which the worker decides.
template <typename Request, typename Handler>
class UnaryCall {
 public:
  UnaryCall(const RpcEnvironment& rpc, absl::string_view method,
            grpc::CallbackServerContext* context, Handler handler)
      : rpc_(rpc),
        method_(method),
        context_(context),
        handler_(std::move(handler)),
        reactor_(context->DefaultReactor()),
        arrival_(rpc.clock->Elapsed()) {}

  // `method` must be a literal.
  grpc::ServerUnaryReactor* Start(const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) const {
    const bool queued =
        rpc_.executor->TrySchedule([call = *this, request, response] {
          call.Finish(call.Execute(*request, response));
        });
    if (!queued) {
      rpc_.observer->OnRpcRejected();
      Finish(OverloadedError(kOverloadMessage, kOverloadRetryDelay));
    }
    return reactor_;
  }

 private:
  absl::Status Execute(const grpc::ByteBuffer& request_bytes,
                       grpc::ByteBuffer* response_bytes) const {
    CUBICML_RETURN_IF_ERROR(CheckAwaited(*context_, *rpc_.clock));
    Request request;
    CUBICML_RETURN_IF_ERROR(ParseMessage(request_bytes, &request));
    CUBICML_ASSIGN_OR_RETURN(const auto response, handler_(request));
    CUBICML_ASSIGN_OR_RETURN(*response_bytes, SerializeMessage(response));
    return absl::OkStatus();
  }

  void Finish(const absl::Status& status) const {
    rpc_.observer->OnRpcDone(method_, status.code(),
                             rpc_.clock->Elapsed() - arrival_);
    reactor_->Finish(ToGrpcStatus(status, method_));
  }

  const RpcEnvironment rpc_;
  const absl::string_view method_;
  grpc::CallbackServerContext* const context_;
  const Handler handler_;
  grpc::ServerUnaryReactor* const reactor_;
  const absl::Duration arrival_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_UNARY_DISPATCH_H_
