// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/utf8.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

// Bytes of the character that `text` starts with; 0 when it is not one.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) second_min = 0xA0;  // overlong
    if (lead == 0xED) second_max = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) second_min = 0x90;  // overlong
    if (lead == 0xF4) second_max = 0x8F;  // above U+10FFFF
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  if (byte(1) < second_min || byte(1) > second_max) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

size_t ValidUtf8Prefix(absl::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    const size_t length = CharacterLength(text.substr(position));
    if (length == 0) return position;
    position += length;
  }
  return position;
}

std::string SanitizeText(absl::string_view text, size_t max_bytes) {
  std::string result;
  while (!text.empty() && result.size() <= max_bytes) {
    const size_t valid = ValidUtf8Prefix(text);
    absl::StrAppend(&result, text.substr(0, valid));
    text.remove_prefix(valid);
    if (!text.empty()) {
      result.push_back('?');
      text.remove_prefix(1);
    }
  }
  if (result.size() <= max_bytes) return result;
  constexpr absl::string_view kMark = "...";
  if (max_bytes < kMark.size()) return "";
  result.resize(max_bytes - kMark.size());
  result.resize(ValidUtf8Prefix(result));
  return absl::StrCat(result, kMark);
}

}  // namespace cubicml
