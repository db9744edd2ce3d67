// SPDX-License-Identifier: Apache-2.0

#include "client/cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json_views.h"
#include "client/cli/scalar.h"
#include "client/csv.h"

namespace cubicml {
namespace {

// Characters as a terminal counts them, nearly: bytes that start a character.
size_t WidthOf(absl::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (c & 0xC0) != 0x80;
  return width;
}

bool IsNumberOrEmpty(absl::string_view cell) {
  double number = 0;
  return cell.empty() || absl::SimpleAtod(cell, &number);
}

std::string CellOf(const std::vector<std::string>& row, size_t column) {
  return column < row.size() ? row[column] : "";
}

void AppendRow(const std::vector<std::string>& row,
               const std::vector<size_t>& widths,
               const std::vector<bool>& right, std::string* out) {
  std::string line;
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = CellOf(row, i);
    const std::string padding(widths[i] - WidthOf(cell), ' ');
    absl::StrAppend(&line, i > 0 ? "  " : "", right[i] ? padding : "", cell,
                    right[i] ? "" : padding);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(out, line, "\n");
}

// A string as a YAML scalar: plain where that reads back as the same string.
std::string YamlString(const std::string& text) {
  const absl::StatusOr<v1::Value> resolved = ResolveScalar(text);
  const bool is_text = resolved.ok() && resolved->has_string_value();
  const bool plain = is_text &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_./-+ ()") == std::string::npos &&
                     std::strchr("-.+ ", text.front()) == nullptr &&
                     text.back() != ' ';
  // A JSON string is a double-quoted YAML string.
  return plain
             ? text
             : Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string YamlScalar(const Json& json) {
  if (json.is_string()) return YamlString(json.get<std::string>());
  return json.dump();
}

bool IsFlat(const Json& json) {
  if (!json.is_array()) return false;
  for (const Json& element : json) {
    if (element.is_object() || (element.is_array() && !IsFlat(element))) {
      return false;
    }
  }
  return true;
}

std::string YamlFlow(const Json& json) {
  if (!json.is_array()) return YamlScalar(json);
  std::string out = "[";
  for (const Json& element : json) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", YamlFlow(element));
  }
  return out + "]";
}

void AppendYaml(const Json& json, const std::string& indent, std::string* out) {
  if (json.is_object() && !json.empty()) {
    bool first = true;
    for (const auto& [key, value] : json.items()) {
      // The first key stands on the line of its list's dash.
      if (!first || out->empty() || out->back() == '\n') {
        absl::StrAppend(out, indent);
      }
      first = false;
      absl::StrAppend(out, YamlString(key), ":");
      const bool block = (value.is_object() && !value.empty()) ||
                         (value.is_array() && !IsFlat(value));
      if (block) {
        absl::StrAppend(out, "\n");
        AppendYaml(value, indent + "  ", out);
      } else {
        absl::StrAppend(out, " ", YamlFlow(value), "\n");
      }
    }
  } else if (json.is_array() && !IsFlat(json)) {
    for (const Json& element : json) {
      absl::StrAppend(out, indent, "- ");
      AppendYaml(element, indent + "  ", out);
    }
  } else {
    absl::StrAppend(out, YamlFlow(json), "\n");
  }
}

}  // namespace

std::string FormatTable(const Table& table) {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t i = 0; i < table.headers.size(); ++i) {
    size_t width = WidthOf(table.headers[i]);
    bool numbers = !table.rows.empty();
    for (const std::vector<std::string>& row : table.rows) {
      width = std::max(width, WidthOf(CellOf(row, i)));
      numbers = numbers && IsNumberOrEmpty(CellOf(row, i));
    }
    widths.push_back(width);
    right.push_back(numbers);
  }
  std::string out;
  AppendRow(table.headers, widths, right, &out);
  for (const std::vector<std::string>& row : table.rows) {
    AppendRow(row, widths, right, &out);
  }
  return out;
}

std::string FormatCsv(const Table& table) {
  std::string out = FormatCsvRow(table.headers);
  for (std::vector<std::string> row : table.rows) {
    row.resize(table.headers.size());
    out += FormatCsvRow(row);
  }
  return out;
}

std::string FormatYaml(const Json& json) {
  std::string out;
  AppendYaml(json, "", &out);
  return out;
}

std::string FormatJson(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FormatAnswer(OutputFormat format, const Json& json,
                         const Table& table) {
  switch (format) {
    case OutputFormat::kTable:
      return FormatTable(table);
    case OutputFormat::kJson:
      return FormatJson(json);
    case OutputFormat::kYaml:
      return FormatYaml(json);
    case OutputFormat::kCsv:
      return FormatCsv(table);
  }
  return "";
}

absl::Status WriteAll(int descriptor, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return absl::ErrnoToStatus(errno, "cannot write the output");
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace cubicml
