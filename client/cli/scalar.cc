// SPDX-License-Identifier: Apache-2.0

#include "client/cli/scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cubicml/client/values.h"

namespace cubicml {
namespace {

constexpr absl::string_view kDigits = "0123456789";

bool AllOf(absl::string_view text, absl::string_view characters) {
  return !text.empty() &&
         text.find_first_not_of(characters) == absl::string_view::npos;
}

absl::string_view WithoutSign(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    text.remove_prefix(1);
  }
  return text;
}

// [0-9]+ ( . [0-9]* )? | . [0-9]+, then an exponent.
bool IsDecimalNumber(absl::string_view text) {
  text = WithoutSign(text);
  const size_t exponent = text.find_first_of("eE");
  if (exponent != absl::string_view::npos) {
    if (!AllOf(WithoutSign(text.substr(exponent + 1)), kDigits)) return false;
    text = text.substr(0, exponent);
  }
  const size_t point = text.find('.');
  if (point == absl::string_view::npos) return AllOf(text, kDigits);
  const absl::string_view whole = text.substr(0, point);
  const absl::string_view part = text.substr(point + 1);
  if (whole.empty() && part.empty()) return false;
  return (whole.empty() || AllOf(whole, kDigits)) &&
         (part.empty() || AllOf(part, kDigits));
}

// -1 for no number in another base.
int BaseOf(absl::string_view text) {
  if (absl::StartsWith(text, "0x") &&
      AllOf(text.substr(2), "0123456789abcdefABCDEF")) {
    return 16;
  }
  if (absl::StartsWith(text, "0o") && AllOf(text.substr(2), "01234567")) {
    return 8;
  }
  return -1;
}

absl::StatusOr<int64_t> ParseBase(absl::string_view digits, int base) {
  int64_t number = 0;
  for (const char c : digits) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (number > (std::numeric_limits<int64_t>::max() - digit) / base) {
      return absl::InvalidArgumentError("does not fit 64 bits");
    }
    number = number * base + digit;
  }
  return number;
}

}  // namespace

absl::StatusOr<v1::Value> ResolveScalar(absl::string_view text) {
  if (text.empty() || text == "~") return v1::Value();
  const std::string lower = absl::AsciiStrToLower(text);
  // The schema knows true, True and TRUE, not tRUE.
  const bool one_case =
      text == lower || text == absl::AsciiStrToUpper(text) ||
      (absl::AsciiStrToLower(text.substr(1)) == text.substr(1));
  if (one_case && lower == "null") return v1::Value();
  if (one_case && lower == "true") return MakeValue(true);
  if (one_case && lower == "false") return MakeValue(false);
  if (const int base = BaseOf(text); base > 0) {
    const absl::StatusOr<int64_t> number = ParseBase(text.substr(2), base);
    if (!number.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' does not fit 64 bits"));
    }
    return MakeValue(*number);
  }
  if (AllOf(WithoutSign(text), kDigits)) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' does not fit 64 bits"));
    }
    return MakeValue(number);
  }
  if (double number = 0; IsDecimalNumber(text) &&
                         absl::SimpleAtod(text, &number) &&
                         std::isfinite(number)) {
    return MakeValue(number);
  }
  return MakeValue(text);
}

absl::StatusOr<v1::Value> ParseScalar(absl::string_view text,
                                      v1::ValueType type) {
  if (type == v1::STRING) return MakeValue(text);
  const absl::StatusOr<v1::Value> resolved = ResolveScalar(text);
  const auto kind =
      resolved.ok() ? resolved->kind_case() : v1::Value::KIND_NOT_SET;
  switch (type) {
    case v1::INTEGER:
      if (kind == v1::Value::kInt64Value) return resolved;
      // 8.0 and 1e3 are what scripts make of 8 and 1000.
      if (kind == v1::Value::kDoubleValue) {
        const double number = resolved->double_value();
        if (number == std::floor(number) && std::fabs(number) < 9e15) {
          return MakeValue(static_cast<int64_t>(number));
        }
      }
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not an integer"));
    case v1::NUMBER:
      if (kind == v1::Value::kDoubleValue) return resolved;
      if (kind == v1::Value::kInt64Value) {
        return MakeValue(static_cast<double>(resolved->int64_value()));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not a number"));
    case v1::BOOLEAN:
      if (kind == v1::Value::kBoolValue) return resolved;
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is neither true nor false"));
    default:
      return resolved;
  }
}

absl::StatusOr<absl::Duration> ParsePositiveDuration(absl::string_view text) {
  absl::Duration duration;
  if (double seconds = 0;
      IsDecimalNumber(text) && absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a duration such as 90s, 10m or 1h30m"));
  }
  if (duration <= absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a positive duration"));
  }
  return duration;
}

}  // namespace cubicml
