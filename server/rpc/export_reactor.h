// SPDX-License-Identifier: Apache-2.0
//
// ExportTrials: a server stream that a worker fills page by page. A page is
// read only after the last was taken by the client, so a slow reader costs one
// page of memory, no thread and no read transaction.

#ifndef CUBICML_SERVER_RPC_EXPORT_REACTOR_H_
#define CUBICML_SERVER_RPC_EXPORT_REACTOR_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/strong_id.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/rpc_environment.h"
#include "server/rpc/stream_steps.h"

namespace cubicml {

// Owns itself from the start of the call to OnDone().
class ExportReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  ExportReactor(const RpcEnvironment& rpc, grpc::CallbackServerContext* context,
                const grpc::ByteBuffer* request_bytes);

  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  // On a worker.
  void Begin();
  void LoadPage();
  absl::Status FillPage();

  // Sends the next message of the page, or asks for the next page.
  void WriteNext();
  void FinishWith(const absl::Status& status);

  const RpcEnvironment rpc_;
  grpc::CallbackServerContext* const context_;
  const grpc::ByteBuffer* const request_bytes_;
  const absl::Duration arrival_;
  StreamSteps steps_;

  // One step or write at a time owns these.
  v1::ExportTrialsRequest request_;
  std::vector<grpc::ByteBuffer> page_;
  size_t next_ = 0;  // of the page, to be written
  bool last_page_ = false;
  TrialNumber after_;  // the last trial of the page
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_EXPORT_REACTOR_H_
