// SPDX-License-Identifier: Apache-2.0
//
// ImportTrials: a client stream, read one message at a time. The next one is
// read only after the last was stored, so a client that sends faster than the
// disk writes is held back by gRPC's flow control.

#ifndef CUBICML_SERVER_RPC_IMPORT_REACTOR_H_
#define CUBICML_SERVER_RPC_IMPORT_REACTOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_environment.h"
#include "server/rpc/stream_steps.h"

namespace cubicml {

// Owns itself from the start of the call to OnDone().
class ImportReactor final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  ImportReactor(const RpcEnvironment& rpc, grpc::CallbackServerContext* context,
                grpc::ByteBuffer* response_bytes);

  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  // On a worker.
  void Step();
  absl::Status ImportMessage();
  absl::Status AnswerEndOfStream();

  void FinishWith(const absl::Status& status);

  const RpcEnvironment rpc_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_bytes_;
  const absl::Duration arrival_;
  StreamSteps steps_;

  // One step at a time owns these.
  grpc::ByteBuffer message_;
  bool begun_ = false;
  bool end_of_stream_ = false;
  std::string parent_;  // of the first message
  int64_t trials_ = 0;  // seen
  v1::ImportTrialsResponse response_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_IMPORT_REACTOR_H_
