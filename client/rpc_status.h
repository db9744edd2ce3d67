// SPDX-License-Identifier: Apache-2.0
//
// gRPC's statuses as ours: the same code, and what google.rpc details say as
// the payloads of base/field_error.h.

#ifndef CUBICML_CLIENT_RPC_STATUS_H_
#define CUBICML_CLIENT_RPC_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grpc {
class Status;
}

namespace cubicml {

// `call` and `server` become part of the message: "CreateStudy at HOST:PORT:
// what the server says".
absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view call,
                            absl::string_view server);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_RPC_STATUS_H_
