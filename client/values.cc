// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/values.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cubicml {
namespace {

absl::Status WrongType(const v1::Value& value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", FormatValue(value), "' is not ", wanted));
}

template <typename T>
absl::StatusOr<std::vector<T>> ListAs(const v1::Value& value) {
  if (!value.has_list_value()) return WrongType(value, "a list");
  std::vector<T> elements;
  for (const v1::Value& element : value.list_value().values()) {
    absl::StatusOr<T> converted = ValueAs<T>(element);
    if (!converted.ok()) return converted.status();
    elements.push_back(*std::move(converted));
  }
  return elements;
}

}  // namespace

v1::Value MakeValue(double number) {
  v1::Value value;
  value.set_double_value(number);
  return value;
}

v1::Value MakeValue(bool truth) {
  v1::Value value;
  value.set_bool_value(truth);
  return value;
}

v1::Value MakeValue(absl::string_view text) {
  v1::Value value;
  value.set_string_value(std::string(text));
  return value;
}

v1::Value MakeValue(const std::string& text) {
  return MakeValue(absl::string_view(text));
}

v1::Value MakeValue(const char* text) {
  return MakeValue(absl::string_view(text));
}

Values MakeValues(std::initializer_list<NamedValue> entries) {
  Values values;
  for (const NamedValue& entry : entries) values[entry.name] = entry.value;
  return values;
}

template <>
absl::StatusOr<int64_t> ValueAs(const v1::Value& value) {
  if (value.kind_case() == v1::Value::kInt64Value) return value.int64_value();
  return WrongType(value, "an integer");
}

template <>
absl::StatusOr<double> ValueAs(const v1::Value& value) {
  if (value.kind_case() == v1::Value::kDoubleValue) {
    return value.double_value();
  }
  if (value.kind_case() == v1::Value::kInt64Value) {
    return static_cast<double>(value.int64_value());
  }
  return WrongType(value, "a number");
}

template <>
absl::StatusOr<bool> ValueAs(const v1::Value& value) {
  if (value.kind_case() == v1::Value::kBoolValue) return value.bool_value();
  return WrongType(value, "true or false");
}

template <>
absl::StatusOr<std::string> ValueAs(const v1::Value& value) {
  if (value.kind_case() == v1::Value::kStringValue) {
    return value.string_value();
  }
  return WrongType(value, "a string");
}

template <>
absl::StatusOr<std::vector<int64_t>> ValueAs(const v1::Value& value) {
  return ListAs<int64_t>(value);
}

template <>
absl::StatusOr<std::vector<double>> ValueAs(const v1::Value& value) {
  return ListAs<double>(value);
}

template <>
absl::StatusOr<std::vector<bool>> ValueAs(const v1::Value& value) {
  return ListAs<bool>(value);
}

template <>
absl::StatusOr<std::vector<std::string>> ValueAs(const v1::Value& value) {
  return ListAs<std::string>(value);
}

std::string FormatNumber(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[32];
  // Not scientific in the range that people read as plain numbers.
  const double size = std::fabs(number);
  const bool plain = number == 0 || (size >= 1e-4 && size < 1e15);
  const std::to_chars_result end =
      plain ? std::to_chars(buffer, buffer + sizeof(buffer), number,
                            std::chars_format::fixed)
            : std::to_chars(buffer, buffer + sizeof(buffer), number);
  return std::string(buffer, end.ptr);
}

std::string FormatValue(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return absl::StrCat(value.int64_value());
    case v1::Value::kDoubleValue: {
      std::string text = FormatNumber(value.double_value());
      const bool integral =
          text.find_first_not_of("-0123456789") == std::string::npos;
      return integral ? text + ".0" : text;
    }
    case v1::Value::kStringValue:
      return value.string_value();
    case v1::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case v1::Value::kListValue:
      return absl::StrJoin(value.list_value().values(), ",",
                           [](std::string* out, const v1::Value& element) {
                             out->append(FormatValue(element));
                           });
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return "";
}

}  // namespace cubicml
