// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/errors.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "base/field_error.h"

namespace cubicml {

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayloadUrl);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayMsPayloadUrl);
  int64_t milliseconds = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &milliseconds)) {
    return std::nullopt;
  }
  return absl::Milliseconds(milliseconds);
}

bool IsServerAway(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

}  // namespace cubicml
