// SPDX-License-Identifier: Apache-2.0
//
// Trials as rows: what `trials list` and the like show, and the CSV and JSON
// lines of `trials export` and `trials import`.

#ifndef CUBICML_CLIENT_CLI_TRIAL_TABLES_H_
#define CUBICML_CLIENT_CLI_TRIAL_TABLES_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/output.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// "ads/7"
std::string ShortTrialName(const v1::Trial& trial);

// For people: trial, state, reason, metrics, parameters, source.
Table TrialsTable(const v1::Study& study, std::span<const v1::Trial> trials);

// A knob that differs; without a value where it is not active.
struct KnobDifference {
  std::string knob;  // "tp", "sharding[3]"
  std::optional<v1::Value> baseline;
  std::optional<v1::Value> best;
};
// In the order of declaration.
std::vector<KnobDifference> FindDifferences(const v1::Study& study,
                                            const ValueMap& baseline,
                                            const ValueMap& best);

// For files: one column for each thing that a trial can have. Columns of the
// trial itself that would collide with a name of the study begin with
// "cubicml_".
std::vector<std::string> ExportHeaders(const v1::Study& study);
std::vector<std::string> ExportRow(const v1::Study& study,
                                   const v1::Trial& trial);

struct ImportedTrials {
  std::vector<v1::Trial> trials;
  std::vector<int> lines;  // of each trial in the file
  // Trials that are no measurements (ACTIVE, ABANDONED, EXPIRED, CANCELLED).
  int skipped = 0;
};

// A table with a header of names of parameters, context fields and metrics, and
// a column that says what became of each row; without one all have succeeded.
// What `trials export` writes can be read. INVALID_ARGUMENT with the line.
absl::StatusOr<ImportedTrials> ImportCsv(const v1::Study& study,
                                         absl::string_view text,
                                         const std::string& status_column);

// JSON lines: an object for each trial with state, parameters, context,
// metrics, reason and reason_detail; other keys of `trials export` are skipped.
absl::StatusOr<ImportedTrials> ImportJsonLines(const v1::Study& study,
                                               absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_TRIAL_TABLES_H_
