// SPDX-License-Identifier: Apache-2.0
//
// The one place where the service's errors become gRPC's.

#ifndef CUBICML_SERVER_RPC_GRPC_STATUS_H_
#define CUBICML_SERVER_RPC_GRPC_STATUS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace cubicml {

// The text and the details of a status travel in HTTP/2 headers, which peers
// limit to 8 KiB altogether.
inline constexpr size_t kMaxStatusMessageBytes = 1024;

// What a client sees of `status`, the outcome of `method`:
//   - a message of at most kMaxStatusMessageBytes of valid UTF-8;
//   - in the details (google.rpc.Status) a google.rpc.BadRequest for an error
//     that names its field, a google.rpc.RetryInfo for one that says when to
//     try again (base/field_error.h);
//   - of INTERNAL, DATA_LOSS and UNKNOWN only an error id: their messages may
//     hold SQL, paths and values, and are logged under that id.
grpc::Status ToGrpcStatus(const absl::Status& status, absl::string_view method);

// RESOURCE_EXHAUSTED that asks for a retry after `delay`.
absl::Status OverloadedError(absl::string_view message, absl::Duration delay);

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_GRPC_STATUS_H_
