// SPDX-License-Identifier: Apache-2.0

#include "server/core/request_check.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/stable_hash.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace cubicml {
namespace {

constexpr size_t kMaxIdentifierBytes = 64;
constexpr size_t kMaxLabels = 64;
constexpr size_t kMaxLabelKeyBytes = 63;
constexpr size_t kMaxLabelValueBytes = 256;
constexpr size_t kMaxRequestIdBytes = 64;
constexpr int kMaxPageSize = 1000;

// The maps of a message have no order of their own.
std::string SerializeInOrder(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

absl::Status CheckText(absl::string_view field, absl::string_view text,
                       size_t max_bytes) {
  if (text.size() > max_bytes) {
    return FieldError(
        field, absl::StrCat("has ", text.size(), " bytes, at most ", max_bytes,
                            " are allowed"));
  }
  if (!IsValidUtf8(text)) return FieldError(field, "is not valid UTF-8");
  return absl::OkStatus();
}

absl::Status CheckIdentifier(absl::string_view field, absl::string_view name) {
  bool valid = !name.empty() && name.size() <= kMaxIdentifierBytes &&
               absl::ascii_isalpha(static_cast<unsigned char>(name[0]));
  for (char c : name) {
    valid = valid &&
            (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_');
  }
  if (valid) return absl::OkStatus();
  return FieldError(field,
                    "must be a letter, then letters, digits and underscores, "
                    "at most 64 bytes");
}

absl::Status CheckLabels(absl::string_view field, const LabelMap& labels) {
  if (labels.size() > kMaxLabels) {
    return FieldError(field,
                      absl::StrCat("has ", labels.size(), " labels, at most ",
                                   kMaxLabels, " are allowed"));
  }
  for (const auto& [key, value] : labels) {
    CUBICML_RETURN_IF_ERROR(CheckText(field, key, kMaxLabelKeyBytes));
    if (key.empty()) return FieldError(field, "a label has an empty key");
    CUBICML_RETURN_IF_ERROR(
        CheckText(absl::StrCat(field, ".", key), value, kMaxLabelValueBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ParsePageSize(int page_size, int default_size) {
  if (page_size < 0) return FieldError("page_size", "must not be negative");
  return page_size == 0 ? default_size : std::min(page_size, kMaxPageSize);
}

absl::StatusOr<RequestKey> ParseRequestKey(
    absl::string_view method, absl::string_view request_id,
    const google::protobuf::Message& request) {
  RequestKey key;
  if (request_id.empty()) return key;
  bool printable = request_id.size() <= kMaxRequestIdBytes;
  for (char c : request_id) {
    printable = printable && absl::ascii_isprint(static_cast<unsigned char>(c));
  }
  if (!printable) {
    return FieldError("request_id",
                      "must be at most 64 bytes of printable ASCII");
  }
  const std::unique_ptr<google::protobuf::Message> rest(request.New());
  rest->CopyFrom(request);
  const google::protobuf::FieldDescriptor* field =
      rest->GetDescriptor()->FindFieldByName("request_id");
  if (field != nullptr) rest->GetReflection()->ClearField(rest.get(), field);
  key.id = std::string(request_id);
  key.method = std::string(method);
  key.fingerprint = StableHash(SerializeInOrder(*rest));
  return key;
}

absl::Status WithFieldPrefix(const absl::Status& status,
                             absl::string_view prefix) {
  const auto path = status.GetPayload(kFieldPayloadUrl);
  if (!path.has_value()) return status;
  const std::string field(*path);
  std::string message(status.message());
  // FieldError starts the message with the path, which grows with it.
  message = absl::StartsWith(message, field)
                ? absl::StrCat(prefix, message)
                : absl::StrCat(prefix, field, ": ", message);
  absl::Status result(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  result.SetPayload(kFieldPayloadUrl, absl::Cord(absl::StrCat(prefix, field)));
  return result;
}

}  // namespace cubicml
