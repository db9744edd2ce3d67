// SPDX-License-Identifier: Apache-2.0
//
// A table of measured configurations as tuning problems whose every answer is
// known.

#ifndef CUBICML_CLIENT_REPLAY_MEASURED_TABLE_H_
#define CUBICML_CLIENT_REPLAY_MEASURED_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/csv_file.h"
#include "client/replay/table_spec.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

enum class ColumnType { kBoolean, kInteger, kNumber, kString };

struct MeasuredColumn {
  std::string header;  // in the file
  std::string name;    // as a parameter or context field may be called
  ColumnType type = ColumnType::kString;
};

// A configuration and what running it gave.
struct MeasuredConfiguration {
  std::vector<std::string> values;  // of the parameters, as in the file
  bool ok = false;
  double objective = 0.0;  // mean over the rows that were measured
  int measured_rows = 0;
  std::string status;  // of the first failed row
};

// One context of a table.
struct MeasuredProblem {
  std::vector<std::string> context;  // values, as in the file
  std::vector<MeasuredConfiguration> configurations;
  double best = 0.0;
  size_t measured = 0;  // configurations that work
};

struct MeasuredTable {
  TableSpec spec;
  std::vector<MeasuredColumn> params;
  std::vector<MeasuredColumn> context;
  std::vector<MeasuredProblem> problems;  // in the order of the file
};

// Rows of one configuration are averaged; it works when at least one of its
// rows does. INVALID_ARGUMENT "FILE:LINE: column 'X': ..." for an objective
// that is not a number where the row did not fail.
absl::StatusOr<MeasuredTable> BuildMeasuredTable(const CsvFile& file,
                                                 const TableSpec& spec);

// "model=1.3B nodes=2"; "" without context.
std::string DescribeContext(const MeasuredTable& table,
                            const MeasuredProblem& problem);

// A cell as a value of the column's type. REQUIRES: a cell of that column.
v1::Value ParseCell(const MeasuredColumn& column, const std::string& cell);

// Equal scalar values have equal keys: "8" and "08" are one integer.
std::string ValueKey(const v1::Value& value);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_MEASURED_TABLE_H_
