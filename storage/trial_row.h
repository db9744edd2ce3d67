// SPDX-License-Identifier: Apache-2.0
//
// What is stored of a trial beside the trial itself: the columns that are
// filtered, ordered and queried by. Derived from the proto in one place, for
// every StudyStore.

#ifndef CUBICML_STORAGE_TRIAL_ROW_H_
#define CUBICML_STORAGE_TRIAL_ROW_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"
#include "storage/filter.h"

namespace cubicml {

// The names of enums, so that SQL reads as the proto does.
const std::string& FormatTrialState(v1::Trial::State state);
const std::string& FormatTrialReason(v1::Trial::Reason reason);
const std::string& FormatTrialSource(v1::Trial::Source source);

struct TrialRow {
  std::optional<int64_t> end_time_us;
  std::optional<int64_t> lease_expire_time_us;
  std::string parameters;  // JSON
  std::string context;     // JSON
  std::string metrics;     // JSON
  std::string trial;       // serialized
};

// INVALID_ARGUMENT with the path of the field when a string is not UTF-8.
absl::StatusOr<TrialRow> MakeTrialRow(const v1::Trial& trial);

// The first objective's measurement; nullopt where there is none, or NaN,
// which has no place in an order.
std::optional<double> ObjectiveOf(const v1::Trial& trial,
                                  const std::string& metric);

// The name of the study's first objective; empty when it has none.
std::string FirstObjective(const v1::Study& study);

// What filters see of a trial and of a study.
FilterValue TrialFieldValue(const v1::Trial& trial, int64_t number,
                            std::optional<double> objective,
                            const FilterField& field);
FilterValue StudyFieldValue(const v1::Study& study, const FilterField& field,
                            absl::string_view key);

// INVALID_ARGUMENT with the path of the field when a string anywhere in the
// study is not UTF-8.
absl::Status CheckStudyStrings(const v1::Study& study);

// The labels as a JSON object with sorted keys.
std::string FormatLabels(const v1::Study& study);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_TRIAL_ROW_H_
