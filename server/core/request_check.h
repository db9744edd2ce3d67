// SPDX-License-Identifier: Apache-2.0
//
// Checks that many requests share, and how the fields of nested messages are
// named in errors.

#ifndef CUBICML_SERVER_CORE_REQUEST_CHECK_H_
#define CUBICML_SERVER_CORE_REQUEST_CHECK_H_

#include <google/protobuf/map.h>
#include <google/protobuf/message.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/study_store.h"

namespace cubicml {

inline constexpr size_t kMaxClientIdBytes = 128;
inline constexpr size_t kMaxReasonDetailBytes = 1024;

using LabelMap = google::protobuf::Map<std::string, std::string>;
using MetricMap = google::protobuf::Map<std::string, double>;

// UTF-8 of at most `max_bytes`. INVALID_ARGUMENT naming `field`.
absl::Status CheckText(absl::string_view field, absl::string_view text,
                       size_t max_bytes);
// A letter, then letters, digits and underscores; at most 64 bytes.
absl::Status CheckIdentifier(absl::string_view field, absl::string_view name);
// At most 64 labels; keys of 1 to 63 bytes, values of at most 256.
absl::Status CheckLabels(absl::string_view field, const LabelMap& labels);

// How many to answer with: `default_size` for 0, at most 1000. INVALID_ARGUMENT
// naming page_size.
absl::StatusOr<int> ParsePageSize(int page_size, int default_size = 50);

// The identity of a call for StudyStore: `request_id` (at most 64 bytes of
// printable ASCII) and a fingerprint of the rest of the request that is the
// same in every process. INVALID_ARGUMENT naming request_id.
absl::StatusOr<RequestKey> ParseRequestKey(
    absl::string_view method, absl::string_view request_id,
    const google::protobuf::Message& request);

// The same error, about a field of a message that is itself the field `prefix`
// of the request: "parameters[0].name" becomes "study.parameters[0].name".
// Errors that name no field, and OK, stay as they are.
absl::Status WithFieldPrefix(const absl::Status& status,
                             absl::string_view prefix);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_REQUEST_CHECK_H_
