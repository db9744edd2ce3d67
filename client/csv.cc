// SPDX-License-Identifier: Apache-2.0

#include "client/csv.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

// Reads one row after another. Not thread-safe.
class CsvReader {
 public:
  CsvReader(absl::string_view where, absl::string_view text)
      : where_(where), text_(text) {
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
  absl::Status Error(size_t line, absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, line, ": ", message));
  }

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
    return Error(start, "a quote is never closed");
  }

  absl::Status EndLine() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) {
      if (text_[at_] != '\n') {
        return Error(line_, "text after a closing quote");
      }
      ++at_;
    }
    ++line_;
    return absl::OkStatus();
  }

  const absl::string_view where_;
  const absl::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<CsvRow>> ParseCsvRows(absl::string_view where,
                                                 absl::string_view text) {
  std::vector<CsvRow> rows;
  CsvReader reader(where, text);
  while (!reader.done()) {
    CUBICML_ASSIGN_OR_RETURN(CsvRow row, reader.Next());
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string FormatCsvCell(absl::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(cell);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

std::string FormatCsvRow(const std::vector<std::string>& cells) {
  std::string row;
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&row, i > 0 ? "," : "", FormatCsvCell(cells[i]));
  }
  return row + "\n";
}

}  // namespace cubicml
