// SPDX-License-Identifier: Apache-2.0
//
// A CSV file with a header line.

#ifndef CUBICML_CLIENT_REPLAY_CSV_FILE_H_
#define CUBICML_CLIENT_REPLAY_CSV_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/csv.h"

namespace cubicml {

// Every row has as many cells as the header.
struct CsvFile {
  std::string name;  // for messages
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  // INVALID_ARGUMENT naming the file and the column.
  absl::StatusOr<size_t> FindColumn(absl::string_view column) const;
};

// INVALID_ARGUMENT "NAME:LINE: ..." for a row of another length, an open quote,
// or a header with an empty or repeated name.
absl::StatusOr<CsvFile> ParseCsv(absl::string_view name,
                                 absl::string_view text);

// Also NOT_FOUND.
absl::StatusOr<CsvFile> ReadCsv(const std::string& path);

// The whole file. NOT_FOUND.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_CSV_FILE_H_
