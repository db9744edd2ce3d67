// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/import_reactor.h"

#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/rpc/call_deadline.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/wire_message.h"

namespace cubicml {

ImportReactor::ImportReactor(const RpcEnvironment& rpc,
                             grpc::CallbackServerContext* context,
                             grpc::ByteBuffer* response_bytes)
    : rpc_(rpc),
      context_(context),
      response_bytes_(response_bytes),
      arrival_(rpc.clock->Elapsed()),
      steps_(rpc.executor) {
  StartRead(&message_);
}

void ImportReactor::OnReadDone(bool ok) {
  end_of_stream_ = !ok;
  if (begun_) {
    steps_.Continue([this] { Step(); });
    return;
  }
  begun_ = true;
  if (!steps_.TryBegin([this] { Step(); })) {
    rpc_.observer->OnRpcRejected();
    FinishWith(OverloadedError(kOverloadMessage, kOverloadRetryDelay));
  }
}

void ImportReactor::Step() {
  absl::Status status = CheckAwaited(*context_, *rpc_.clock);
  if (status.ok()) {
    status = end_of_stream_ ? AnswerEndOfStream() : ImportMessage();
  }
  if (!status.ok() && response_.imported() > 0) {
    status = WithContext(status, absl::StrCat("after ", response_.imported(),
                                              " trials were imported"));
  }
  if (!status.ok() || end_of_stream_) {
    FinishWith(status);
    return;
  }
  message_.Clear();
  StartRead(&message_);  // may end in OnReadDone before it returns
}

absl::Status ImportReactor::ImportMessage() {
  v1::ImportTrialsRequest request;
  CUBICML_RETURN_IF_ERROR(ParseMessage(message_, &request));
  if (parent_.empty()) {
    parent_ = request.parent();
  } else if (!request.parent().empty() && request.parent() != parent_) {
    return FieldError("parent", absl::StrCat("must stay ", parent_,
                                             " over the whole stream"));
  }
  if (parent_.empty()) {
    return FieldError("parent", "the first message must name the study");
  }
  const std::vector<v1::Trial> trials(
      std::make_move_iterator(request.mutable_trials()->begin()),
      std::make_move_iterator(request.mutable_trials()->end()));
  CUBICML_RETURN_IF_ERROR(
      rpc_.service->ImportTrials(parent_, trials, trials_, &response_));
  trials_ += static_cast<int64_t>(trials.size());
  return absl::OkStatus();
}

absl::Status ImportReactor::AnswerEndOfStream() {
  if (parent_.empty()) {
    return FieldError("parent", "the first message must name the study");
  }
  CUBICML_ASSIGN_OR_RETURN(*response_bytes_, SerializeMessage(response_));
  return absl::OkStatus();
}

void ImportReactor::FinishWith(const absl::Status& status) {
  constexpr absl::string_view kMethod = "ImportTrials";
  rpc_.observer->OnRpcDone(kMethod, status.code(),
                           rpc_.clock->Elapsed() - arrival_);
  Finish(ToGrpcStatus(status, kMethod));
}

}  // namespace cubicml
