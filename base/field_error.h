// SPDX-License-Identifier: Apache-2.0
//
// Errors that name the field of a request, or when to try again. The transport
// turns these payloads into google.rpc.BadRequest and google.rpc.RetryInfo.

#ifndef CUBICML_BASE_FIELD_ERROR_H_
#define CUBICML_BASE_FIELD_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace cubicml {

// Payload of an error: the path of the field, e.g. "parameters[2].integer.max".
inline constexpr absl::string_view kFieldPayloadUrl = "cubicml/field";
// Payload of an error: milliseconds to wait before a retry, as decimal text.
inline constexpr absl::string_view kRetryDelayMsPayloadUrl =
    "cubicml/retry_delay_ms";

// INVALID_ARGUMENT "path: message".
inline absl::Status FieldError(absl::string_view path,
                               absl::string_view message) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat(path, ": ", message));
  status.SetPayload(kFieldPayloadUrl, absl::Cord(path));
  return status;
}

// The error, saying that a retry after `delay` may do.
inline absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryDelayMsPayloadUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(delay))));
  return status;
}

}  // namespace cubicml

#endif  // CUBICML_BASE_FIELD_ERROR_H_
