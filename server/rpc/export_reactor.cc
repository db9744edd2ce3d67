// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/export_reactor.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "server/core/resource_name.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/wire_message.h"
#include "storage/study_store.h"

namespace cubicml {
namespace {

constexpr size_t kMaxHeldBytes = size_t{1} << 20;

}  // namespace

ExportReactor::ExportReactor(const RpcEnvironment& rpc,
                             grpc::CallbackServerContext* context,
                             const grpc::ByteBuffer* request_bytes)
    : rpc_(rpc),
      context_(context),
      request_bytes_(request_bytes),
      arrival_(rpc.clock->Elapsed()),
      steps_(rpc.executor) {
  if (!steps_.TryBegin([this] { Begin(); })) {
    rpc_.observer->OnRpcRejected();
    FinishWith(OverloadedError(kOverloadMessage, kOverloadRetryDelay));
  }
}

void ExportReactor::Begin() {
  const absl::Status status = ParseMessage(*request_bytes_, &request_);
  if (!status.ok()) {
    FinishWith(status);
    return;
  }
  LoadPage();
}

void ExportReactor::LoadPage() {
  absl::Status status = CheckAwaited(*context_, *rpc_.clock);
  if (status.ok()) status = FillPage();
  if (!status.ok()) {
    FinishWith(status);
    return;
  }
  WriteNext();
}

absl::Status ExportReactor::FillPage() {
  page_.clear();
  next_ = 0;
  size_t page_bytes = 0;
  bool page_full = false;
  const absl::Status status = rpc_.service->ExportTrials(
      request_,
      [&](v1::Trial&& trial) -> absl::Status {
        CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                                 ParseTrialName("name", trial.name()));
        CUBICML_ASSIGN_OR_RETURN(grpc::ByteBuffer message,
                                 SerializeMessage(trial));
        after_ = name.number;
        page_bytes += message.Length();
        page_.push_back(std::move(message));
        page_full =
            page_.size() >= kScanPageTrials || page_bytes >= kMaxHeldBytes;
        return page_full ? absl::CancelledError("the page is full")
                         : absl::OkStatus();
      },
      after_, [this] { return CheckAwaited(*context_, *rpc_.clock); });
  last_page_ = !page_full;
  return page_full ? absl::OkStatus() : status;
}

void ExportReactor::WriteNext() {
  if (next_ < page_.size()) {
    // Without a buffer hint: under one, gRPC 1.51 may keep the first messages
    // and never say that they are written.
    StartWrite(&page_[next_++]);
  } else if (last_page_) {
    FinishWith(absl::OkStatus());
  } else {
    steps_.Continue([this] { LoadPage(); });
  }
}

void ExportReactor::OnWriteDone(bool ok) {
  if (ok) {
    WriteNext();
  } else {
    FinishWith(absl::CancelledError("the client went away"));
  }
}

void ExportReactor::FinishWith(const absl::Status& status) {
  constexpr absl::string_view kMethod = "ExportTrials";
  rpc_.observer->OnRpcDone(kMethod, status.code(),
                           rpc_.clock->Elapsed() - arrival_);
  Finish(ToGrpcStatus(status, kMethod));
}

}  // namespace cubicml
