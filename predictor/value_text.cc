// SPDX-License-Identifier: Apache-2.0

#include "predictor/value_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

constexpr double kTwoTo53 = 9007199254740992.0;

// The number of bytes that follow `lead`, or -1 when none may start with it.
int CountContinuationBytes(uint8_t lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead <= 0xDF) return 1;
  if (lead >= 0xE0 && lead <= 0xEF) return 2;
  if (lead >= 0xF0 && lead <= 0xF4) return 3;
  return -1;
}

// Overlong forms, surrogates, and what lies beyond U+10FFFF.
bool IsForbiddenSecondByte(uint8_t lead, uint8_t second) {
  return (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
         (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
}

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    const int following = CountContinuationBytes(lead);
    if (following < 0) return false;
    for (int k = 0; k < following; ++k, ++i) {
      if (i >= text.size()) return false;
      const auto byte = static_cast<uint8_t>(text[i]);
      if ((byte & 0xC0) != 0x80) return false;
      if (k == 0 && IsForbiddenSecondByte(lead, byte)) return false;
    }
  }
  return true;
}

void AppendDouble(double value, std::string* out) {
  if (std::fabs(value) < kTwoTo53 && value == std::trunc(value)) {
    absl::StrAppend(out, static_cast<int64_t>(value));
    return;
  }
  std::array<char, 32> buffer;
  const std::to_chars_result end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out->append(buffer.data(), end.ptr);
}

std::string FormatDouble(double value) {
  std::string text;
  AppendDouble(value, &text);
  return text;
}

std::string QuoteForMessage(absl::string_view text) {
  constexpr size_t kShown = 64;
  const bool cut = text.size() > kShown;
  const std::string shown(text.substr(0, kShown));
  const bool valid = !cut && IsValidUtf8(shown);
  return absl::StrCat(
      "\"", valid ? absl::Utf8SafeCEscape(shown) : absl::CEscape(shown),
      cut ? "..." : "", "\"");
}

std::string DescribeValue(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return absl::StrCat("the integer ", value.int64_value());
    case v1::Value::kDoubleValue:
      return absl::StrCat("the number ", FormatDouble(value.double_value()));
    case v1::Value::kStringValue:
      return absl::StrCat("the string ", QuoteForMessage(value.string_value()));
    case v1::Value::kBoolValue:
      return absl::StrCat("the boolean ",
                          value.bool_value() ? "true" : "false");
    case v1::Value::kListValue:
      return "a list";
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return "nothing";
}

}  // namespace cubicml
