// SPDX-License-Identifier: Apache-2.0

#include "client/replay/csv_file.h"

#include <fstream>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

absl::Status LineError(absl::string_view name, size_t line,
                       absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":", line, ": ", message));
}

// Reads one row after another. Not thread-safe.
class RowReader {
 public:
  RowReader(absl::string_view name, absl::string_view text)
      : name_(name), text_(text) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;  // byte order mark
  }

  bool done() const { return at_ >= text_.size(); }

  absl::StatusOr<CsvRow> Next() {
    CsvRow row;
    row.line = line_;
    bool more = true;
    while (more) {
      std::string cell;
      if (at_ < text_.size() && text_[at_] == '"') {
        CUBICML_RETURN_IF_ERROR(ReadQuoted(&cell));
      } else {
        ReadPlain(&cell);
      }
      row.cells.push_back(std::move(cell));
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) ++at_;
    }
    CUBICML_RETURN_IF_ERROR(EndLine());
    return row;
  }

 private:
  void ReadPlain(std::string* cell) {
    const size_t end = text_.find_first_of(",\r\n", at_);
    *cell = std::string(text_.substr(at_, end - at_));
    at_ = end == absl::string_view::npos ? text_.size() : end;
  }

  absl::Status ReadQuoted(std::string* cell) {
    const size_t start = line_;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell->push_back(c);
      } else if (at_ < text_.size() && text_[at_] == '"') {
        cell->push_back('"');
        ++at_;
      } else {
        return absl::OkStatus();
      }
    }
    return LineError(name_, start, "a quote is never closed");
  }

  absl::Status EndLine() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) {
      if (text_[at_] != '\n') {
        return LineError(name_, line_, "text after a closing quote");
      }
      ++at_;
    }
    ++line_;
    return absl::OkStatus();
  }

  const absl::string_view name_;
  const absl::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
};

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
  RowReader reader(name, text);
  if (reader.done()) return LineError(name, 1, "the file is empty");
  CUBICML_ASSIGN_OR_RETURN(CsvRow header, reader.Next());
  file.header = std::move(header.cells);
  CUBICML_RETURN_IF_ERROR(CheckHeader(file));
  while (!reader.done()) {
    CUBICML_ASSIGN_OR_RETURN(CsvRow row, reader.Next());
    const bool blank = row.cells.size() == 1 && row.cells[0].empty();
    if (blank && file.header.size() > 1) continue;
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

std::string FormatCsvCell(absl::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(cell);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
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
