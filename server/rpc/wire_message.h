// SPDX-License-Identifier: Apache-2.0
//
// Messages from and to the bytes of the wire. The service takes raw bytes from
// gRPC and parses them itself, on a worker: gRPC answers a message that it
// cannot parse with UNIMPLEMENTED and no text, and ends a stream of them as if
// the client had finished.

#ifndef CUBICML_SERVER_RPC_WIRE_MESSAGE_H_
#define CUBICML_SERVER_RPC_WIRE_MESSAGE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace cubicml {

// The largest message that the server sends: what clients of every language
// receive unless they are told otherwise.
inline constexpr size_t kMaxResponseBytes = size_t{4} << 20;
// The largest that it receives: smaller, so that a study that came in can go
// out again with what the service adds to it.
inline constexpr size_t kMaxRequestBytes = kMaxResponseBytes - (64 << 10);

// INVALID_ARGUMENT names the first string that is not UTF-8.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message);

// RESOURCE_EXHAUSTED for more than kMaxResponseBytes.
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(
    const google::protobuf::Message& message);

// Protobuf writes a line to standard error for each string that is not UTF-8;
// the client is told instead. Its other lines go to our log.
void RouteProtobufLog();

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_WIRE_MESSAGE_H_
