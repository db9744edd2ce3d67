// SPDX-License-Identifier: Apache-2.0

#include "storage/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace cubicml {
namespace {

constexpr absl::string_view kHexDigits = "0123456789abcdef";
// Values nest only through lists; deeper ones are no parameter's.
constexpr int kMaxDepth = 8;

absl::Status AppendJsonValue(const v1::Value& value, absl::string_view path,
                             int depth, std::string* out) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      absl::StrAppend(out, value.int64_value());
      return absl::OkStatus();
    case v1::Value::kDoubleValue:
      AppendJsonNumber(value.double_value(), out);
      return absl::OkStatus();
    case v1::Value::kStringValue:
      CUBICML_RETURN_IF_ERROR(CheckUtf8(value.string_value(), path));
      AppendJsonString(value.string_value(), out);
      return absl::OkStatus();
    case v1::Value::kBoolValue:
      absl::StrAppend(out, value.bool_value() ? "true" : "false");
      return absl::OkStatus();
    case v1::Value::kListValue:
      break;
    case v1::Value::KIND_NOT_SET:
      absl::StrAppend(out, "null");
      return absl::OkStatus();
  }
  if (depth >= kMaxDepth) return FieldError(path, "lists are nested too deep");
  absl::string_view separator = "[";
  for (const v1::Value& element : value.list_value().values()) {
    absl::StrAppend(out, separator);
    separator = ",";
    CUBICML_RETURN_IF_ERROR(AppendJsonValue(element, path, depth + 1, out));
  }
  absl::StrAppend(out, value.list_value().values().empty() ? "[]" : "]");
  return absl::OkStatus();
}

absl::Status AppendElement(const v1::Value& value, absl::string_view path,
                           std::string* out) {
  return AppendJsonValue(value, path, 0, out);
}
absl::Status AppendElement(double value, absl::string_view /*path*/,
                           std::string* out) {
  AppendJsonNumber(value, out);
  return absl::OkStatus();
}
absl::Status AppendElement(const std::string& value, absl::string_view path,
                           std::string* out) {
  CUBICML_RETURN_IF_ERROR(CheckUtf8(value, path));
  AppendJsonString(value, out);
  return absl::OkStatus();
}

template <typename Map>
absl::Status AppendObject(const Map& map, absl::string_view path,
                          std::string* out) {
  std::vector<const typename Map::value_type*> entries;
  entries.reserve(map.size());
  for (const auto& entry : map) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  absl::string_view separator = "{";
  for (const auto* entry : entries) {
    absl::StrAppend(out, separator);
    separator = ",";
    CUBICML_RETURN_IF_ERROR(CheckUtf8(entry->first, path));
    AppendJsonString(entry->first, out);
    absl::StrAppend(out, ":");
    CUBICML_RETURN_IF_ERROR(AppendElement(entry->second, path, out));
  }
  absl::StrAppend(out, entries.empty() ? "{}" : "}");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUtf8(absl::string_view text, absl::string_view path) {
  if (IsValidUtf8(text)) return absl::OkStatus();
  return FieldError(path, "not valid UTF-8");
}

void AppendJsonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      absl::StrAppend(out, "\\u00");
      out->push_back(kHexDigits[byte >> 4]);
      out->push_back(kHexDigits[byte & 15]);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

void AppendJsonNumber(double value, std::string* out) {
  if (std::isnan(value)) {
    absl::StrAppend(out, "null");
    return;
  }
  if (std::isinf(value)) {
    absl::StrAppend(out, value > 0 ? "9e999" : "-9e999");
    return;
  }
  std::array<char, 32> buffer{};
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  const absl::string_view digits(
      buffer.data(), static_cast<size_t>(result.ptr - buffer.data()));
  absl::StrAppend(out, digits);
  if (digits.find_first_of(".e") == absl::string_view::npos) {
    absl::StrAppend(out, ".0");
  }
}

absl::Status AppendJsonObject(const ValueMap& map, absl::string_view path,
                              std::string* out) {
  return AppendObject(map, path, out);
}
absl::Status AppendJsonObject(const NumberMap& map, absl::string_view path,
                              std::string* out) {
  return AppendObject(map, path, out);
}
absl::Status AppendJsonObject(const StringMap& map, absl::string_view path,
                              std::string* out) {
  return AppendObject(map, path, out);
}

}  // namespace cubicml
