// SPDX-License-Identifier: Apache-2.0
//
// What the columns of a table of measured configurations are.

#ifndef CUBICML_CLIENT_REPLAY_TABLE_SPEC_H_
#define CUBICML_CLIENT_REPLAY_TABLE_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cubicml {

struct TableSpec {
  std::string name;
  std::string path;                 // of the CSV file
  std::vector<std::string> params;  // columns that the tuner sets
  // Columns that say what the job is; each combination of their values is a
  // problem of its own. A column that is both is a context column.
  std::vector<std::string> context;
  std::string objective;
  bool maximize = true;
  std::string status;  // empty: a row failed when its objective is empty
  std::string ok_value = "ok";
};

// The tables of an index file: a JSON object from name to {"file": CSV relative
// to the index, "params": [...], "context": [...], "objective": "...",
// "direction": "max" | "min", "status": "..." | null}; other keys are ignored.
// `names` selects some, in that order; empty: all of them. NOT_FOUND for a file
// or a name that is not there; INVALID_ARGUMENT naming the table and the key.
absl::StatusOr<std::vector<TableSpec>> ReadTableIndex(
    const std::string& path, const std::vector<std::string>& names);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_TABLE_SPEC_H_
