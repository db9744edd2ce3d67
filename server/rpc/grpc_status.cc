// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/grpc_status.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/field_error.h"
#include "base/log.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/sanitize_text.h"

namespace cubicml {
namespace {

constexpr size_t kMaxFieldBytes = 256;

// Unique over the runs of the server, so that a report from last week finds
// its line in the log.
std::string NextErrorId() {
  static const int64_t kStart = absl::ToUnixSeconds(SystemClock().Now());
  static std::atomic<int64_t> count{0};
  return absl::StrCat(absl::Hex(kStart), "-", ++count);
}

bool IsOurFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnknown;
}

absl::string_view PublicMessage(absl::StatusCode code) {
  return code == absl::StatusCode::kDataLoss ? "stored data cannot be read"
                                             : "internal error";
}

std::optional<std::string> Payload(const absl::Status& status,
                                   absl::string_view url) {
  const std::optional<absl::Cord> payload = [&]() -> std::optional<absl::Cord> {
    auto found = status.GetPayload(url);
    if (!found.has_value()) return std::nullopt;
    return *found;
  }();
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

void AddFieldViolation(const std::string& field, const std::string& message,
                       google::rpc::Status* details) {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field(SanitizeText(field, kMaxFieldBytes));
  // The message is "field: description".
  absl::string_view description = message;
  if (absl::ConsumePrefix(&description, field)) {
    absl::ConsumePrefix(&description, ": ");
  }
  violation->set_description(std::string(description));
  details->add_details()->PackFrom(bad_request);
}

void AddRetryDelay(int64_t delay_ms, google::rpc::Status* details) {
  google::rpc::RetryInfo retry_info;
  retry_info.mutable_retry_delay()->set_seconds(delay_ms / 1000);
  retry_info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(delay_ms % 1000) * 1'000'000);
  details->add_details()->PackFrom(retry_info);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status,
                          absl::string_view method) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (IsOurFault(status.code())) {
    const std::string error_id = NextErrorId();
    CUBICML_LOG(ERROR) << "call failed" << Field("method", method)
                       << Field("error_id", error_id)
                       << Field("status", status.ToString());
    return grpc::Status(
        code, absl::StrCat(PublicMessage(status.code()),
                           " (the server's log has the cause, error_id=",
                           error_id, ")"));
  }
  const std::string message =
      SanitizeText(status.message(), kMaxStatusMessageBytes);
  google::rpc::Status details;
  if (const auto field = Payload(status, kFieldPayloadUrl)) {
    AddFieldViolation(*field, message, &details);
  }
  int64_t delay_ms = 0;
  if (const auto delay = Payload(status, kRetryDelayMsPayloadUrl);
      delay.has_value() && absl::SimpleAtoi(*delay, &delay_ms) &&
      delay_ms >= 0) {
    AddRetryDelay(delay_ms, &details);
  }
  if (details.details().empty()) return grpc::Status(code, message);
  details.set_code(static_cast<int32_t>(code));
  details.set_message(message);
  return grpc::Status(code, message, details.SerializeAsString());
}

absl::Status OverloadedError(absl::string_view message, absl::Duration delay) {
  return WithRetryDelay(absl::ResourceExhaustedError(message), delay);
}

}  // namespace cubicml
