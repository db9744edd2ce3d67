// SPDX-License-Identifier: Apache-2.0

#include "client/rpc_status.h"

#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace cubicml {
namespace {

void AddDetails(const grpc::Status& from, absl::Status* to) {
  google::rpc::Status details;
  if (!details.ParseFromString(from.error_details())) return;
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&bad_request) &&
        bad_request.field_violations_size() > 0) {
      to->SetPayload(kFieldPayloadUrl,
                     absl::Cord(bad_request.field_violations(0).field()));
    } else if (detail.UnpackTo(&retry)) {
      const int64_t milliseconds = retry.retry_delay().seconds() * 1000 +
                                   retry.retry_delay().nanos() / 1'000'000;
      to->SetPayload(kRetryDelayMsPayloadUrl,
                     absl::Cord(absl::StrCat(milliseconds)));
    }
  }
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status, absl::string_view call,
                            absl::string_view server) {
  if (status.ok()) return absl::OkStatus();
  // The numbers of the codes are the same by design of both.
  absl::Status result(
      static_cast<absl::StatusCode>(status.error_code()),
      absl::StrCat(call, " at ", server, ": ", status.error_message()));
  AddDetails(status, &result);
  return result;
}

}  // namespace cubicml
