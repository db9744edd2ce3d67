// SPDX-License-Identifier: Apache-2.0
//
// A token is web-safe base64 of: version (1 byte), checksum of the list and of
// what follows (8), id (8), kind of the key (1), key (8, or the rest for text).
// Integers are little-endian.

#include "storage/page_token.h"

#include <bit>
#include <cstddef>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/stable_hash.h"

namespace cubicml {
namespace {

constexpr char kVersion = 1;
constexpr size_t kMaxTokenBytes = 2048;
constexpr size_t kHeaderBytes = 1 + 8 + 8 + 1;

// Guards against mistakes, not against forgers, who would win nothing: a token
// only says where to start reading.
uint64_t Checksum(absl::string_view list, absl::string_view payload) {
  return StableHash(absl::StrCat(list.size(), ":", list, payload));
}

void AppendUint64(uint64_t value, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) {
    out->push_back(static_cast<char>((value >> shift) & 0xFF));
  }
}

uint64_t ReadUint64(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

absl::Status BadToken() {
  return FieldError("page_token",
                    "not a token of this list with this filter and order");
}

}  // namespace

std::string FormatPageToken(absl::string_view list, const PageCursor& cursor) {
  std::string payload;
  AppendUint64(static_cast<uint64_t>(cursor.id), &payload);
  payload.push_back(static_cast<char>(cursor.key.index()));
  if (const auto* integer = std::get_if<int64_t>(&cursor.key)) {
    AppendUint64(static_cast<uint64_t>(*integer), &payload);
  } else if (const auto* real = std::get_if<double>(&cursor.key)) {
    AppendUint64(std::bit_cast<uint64_t>(*real), &payload);
  } else if (const auto* text = std::get_if<std::string>(&cursor.key)) {
    payload += *text;
  }
  std::string bytes(1, kVersion);
  AppendUint64(Checksum(list, payload), &bytes);
  return absl::WebSafeBase64Escape(bytes + payload);
}

absl::StatusOr<PageCursor> ParsePageToken(absl::string_view list,
                                          absl::string_view token) {
  std::string bytes;
  if (token.size() > kMaxTokenBytes ||
      !absl::WebSafeBase64Unescape(token, &bytes) ||
      bytes.size() < kHeaderBytes || bytes[0] != kVersion) {
    return BadToken();
  }
  const absl::string_view payload = absl::string_view(bytes).substr(9);
  if (ReadUint64(absl::string_view(bytes).substr(1)) !=
      Checksum(list, payload)) {
    return BadToken();
  }
  PageCursor cursor;
  cursor.id = static_cast<int64_t>(ReadUint64(payload));
  const absl::string_view key = payload.substr(9);
  switch (payload[8]) {
    case 0:
      if (!key.empty()) return BadToken();
      break;
    case 1:
      if (key.size() != 8) return BadToken();
      cursor.key = static_cast<int64_t>(ReadUint64(key));
      break;
    case 2:
      if (key.size() != 8) return BadToken();
      cursor.key = std::bit_cast<double>(ReadUint64(key));
      break;
    case 3:
      cursor.key = std::string(key);
      break;
    default:
      return BadToken();
  }
  return cursor;
}

}  // namespace cubicml
