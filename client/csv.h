// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values as RFC 4180 has them, read and written.

#ifndef CUBICML_CLIENT_CSV_H_
#define CUBICML_CLIENT_CSV_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

struct CsvRow {
  size_t line = 0;  // from 1, where the row starts
  std::vector<std::string> cells;

  // An empty line.
  bool blank() const { return cells.size() == 1 && cells[0].empty(); }
};

// Quoted cells may hold commas, quotes and line breaks; lines end in \n or
// \r\n, and a byte order mark is skipped. INVALID_ARGUMENT "WHERE3: ..." for an
// open quote or text after a quote on line 3.
absl::StatusOr<std::vector<CsvRow>> ParseCsvRows(absl::string_view where,
                                                 absl::string_view text);

// A cell as it is written: quoted where it needs to be.
std::string FormatCsvCell(absl::string_view cell);
// With \n at its end.
std::string FormatCsvRow(const std::vector<std::string>& cells);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CSV_H_
