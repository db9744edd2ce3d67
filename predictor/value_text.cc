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

constexpr double kMaxExactInteger = 9007199254740992.0;

}  // namespace

void AppendDouble(double value, std::string* out) {
  if (std::fabs(value) < kMaxExactInteger && value == std::trunc(value)) {
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
