// SPDX-License-Identifier: Apache-2.0
//
// What commands print: one answer as a table for people, or as JSON, YAML or
// CSV for programs. Values go to standard output, messages to standard error.

#ifndef CUBICML_CLIENT_CLI_OUTPUT_H_
#define CUBICML_CLIENT_CLI_OUTPUT_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

enum class OutputFormat { kTable, kJson, kYaml, kCsv };

// Cells of text under headers. A row may be shorter than the headers.
struct Table {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
};

// Columns padded to their widest cell (in code points) and two spaces between
// them; columns of which every cell is a number stand to the right.
std::string FormatTable(const Table& table);
// RFC 4180, with \n at the end of lines.
std::string FormatCsv(const Table& table);
// By YAML 1.2; strings that would be read as something else are quoted.
std::string FormatYaml(const nlohmann::ordered_json& json);
std::string FormatJson(const nlohmann::ordered_json& json);

// The answer in the wanted format.
std::string FormatAnswer(OutputFormat format,
                         const nlohmann::ordered_json& json,
                         const Table& table);

// All of `text` to the descriptor, whatever its bytes.
absl::Status WriteAll(int descriptor, absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_OUTPUT_H_
