// SPDX-License-Identifier: Apache-2.0

#include "client/replay/csv_file.h"

#include <fstream>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

absl::Status LineError(absl::string_view name, size_t line,
                       absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":", line, ": ", message));
}

absl::Status CheckHeader(const CsvFile& file) {
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < file.header.size(); ++i) {
    if (file.header[i].empty()) {
      return LineError(file.name, 1,
                       absl::StrCat("column ", i + 1, " has no name"));
    }
    if (!seen.insert(file.header[i]).second) {
      return LineError(
          file.name, 1,
          absl::StrCat("there are two columns '", file.header[i], "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> CsvFile::FindColumn(absl::string_view column) const {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == column) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":1: there is no column '", column, "'"));
}

absl::StatusOr<CsvFile> ParseCsv(absl::string_view name,
                                 absl::string_view text) {
  CsvFile file;
  file.name = std::string(name);
  CUBICML_ASSIGN_OR_RETURN(std::vector<CsvRow> rows,
                           ParseCsvRows(absl::StrCat(name, ":"), text));
  if (rows.empty()) return LineError(name, 1, "the file is empty");
  file.header = std::move(rows[0].cells);
  CUBICML_RETURN_IF_ERROR(CheckHeader(file));
  for (size_t i = 1; i < rows.size(); ++i) {
    CsvRow& row = rows[i];
    if (row.blank() && file.header.size() > 1) continue;
    if (row.cells.size() != file.header.size()) {
      return LineError(name, row.line,
                       absl::StrCat(row.cells.size(), " cells where the header",
                                    " has ", file.header.size()));
    }
    file.rows.push_back(std::move(row));
  }
  return file;
}

absl::StatusOr<CsvFile> ReadCsv(const std::string& path) {
  CUBICML_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseCsv(path, text);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace cubicml
