// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.h"

namespace cubicml {
namespace {

unsigned char ByteAt(absl::string_view bytes, size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

// Bytes of the character that starts at `i`, or 0 when none does.
size_t CharacterLength(absl::string_view bytes, size_t i) {
  const unsigned char lead = ByteAt(bytes, i);
  if (lead < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;  // bounds of the second byte
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (i + length > bytes.size()) return 0;
  if (ByteAt(bytes, i + 1) < low || ByteAt(bytes, i + 1) > high) return 0;
  for (size_t j = i + 2; j < i + length; ++j) {
    if (ByteAt(bytes, j) < 0x80 || ByteAt(bytes, j) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

bool IsValidUtf8(absl::string_view bytes) {
  return ValidUtf8Prefix(bytes) == bytes.size();
}

size_t ValidUtf8Prefix(absl::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const size_t length = CharacterLength(bytes, i);
    if (length == 0) break;
    i += length;
  }
  return i;
}

}  // namespace cubicml
