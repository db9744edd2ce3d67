// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/wire_message.h"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/common.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

namespace cubicml {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr int kMaxDepth = 100;  // of nested messages; also Protobuf's limit

// Path of the first string in `bytes`, a message of type `type`, that is not
// UTF-8; empty when there is none. Only called for what Protobuf refused.
std::string FindInvalidString(const std::string& bytes, const Descriptor& type,
                              int depth) {
  UnknownFieldSet fields;
  if (depth > kMaxDepth || !fields.ParseFromString(bytes)) return "";
  std::map<int, int> seen;  // occurrences of each repeated field
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const FieldDescriptor* known = type.FindFieldByNumber(field.number());
    if (known == nullptr ||
        field.type() != UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    std::string path = known->name();
    if (known->is_repeated()) {
      absl::StrAppend(&path, "[", seen[field.number()]++, "]");
    }
    const std::string& value = field.length_delimited();
    if (known->type() == FieldDescriptor::TYPE_STRING &&
        ValidUtf8Prefix(value) < value.size()) {
      return path;
    }
    if (known->type() == FieldDescriptor::TYPE_MESSAGE) {
      const std::string inner =
          FindInvalidString(value, *known->message_type(), depth + 1);
      if (!inner.empty()) return absl::StrCat(path, ".", inner);
    }
  }
  return "";
}

absl::Status ParseError(const grpc::ByteBuffer& bytes, const Descriptor& type) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (bytes.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  const std::string path = FindInvalidString(text, type, 0);
  if (!path.empty()) return FieldError(path, "must be valid UTF-8");
  return absl::InvalidArgumentError(
      absl::StrCat("the request is not a ", type.full_name()));
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::Message* message) {
  if (!bytes.Valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request could not be received; at most ",
                     kMaxRequestBytes, " bytes are"));
  }
  // The reader wants a mutable buffer but only reads it.
  grpc::ByteBuffer copy(bytes);  // shares the bytes
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok() || !message->ParseFromZeroCopyStream(&reader)) {
    return ParseError(bytes, *message->GetDescriptor());
  }
  return absl::OkStatus();
}

absl::StatusOr<grpc::ByteBuffer> SerializeMessage(
    const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxResponseBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer has ", size, " bytes, more than ",
                     kMaxResponseBytes, "; ask for a smaller page_size"));
  }
  grpc::Slice slice(size);
  // A fresh slice is ours alone until it is handed on.
  auto* const begin = const_cast<uint8_t*>(slice.begin());
  message.SerializeWithCachedSizesToArray(begin);
  return grpc::ByteBuffer(&slice, 1);
}

void RouteProtobufLog() {
// Protobuf 22 took this away and logs through Abseil.
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel level,
                                     const char*, int,
                                     const std::string& message) {
    if (absl::StrContains(message, "UTF-8")) return;
    if (level >= google::protobuf::LOGLEVEL_ERROR) {
      CUBICML_LOG(ERROR) << "protobuf" << Field("text", message);
    }
  });
#endif
}

}  // namespace cubicml
