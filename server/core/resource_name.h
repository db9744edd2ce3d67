// SPDX-License-Identifier: Apache-2.0
//
// Names of resources: studies/{study} and studies/{study}/trials/{number}. The
// only place of the server that takes them apart or puts them together.

#ifndef CUBICML_SERVER_CORE_RESOURCE_NAME_H_
#define CUBICML_SERVER_CORE_RESOURCE_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/strong_id.h"

namespace cubicml {

struct TrialName {
  std::string study;  // "studies/x"
  TrialNumber number;
};

// A letter, then lower-case letters, digits and hyphens; at most 63 characters.
// INVALID_ARGUMENT naming `field`.
absl::Status CheckStudyId(absl::string_view field, absl::string_view study_id);

// INVALID_ARGUMENT naming `field` when `name` is not studies/{study}.
absl::Status CheckStudyName(absl::string_view field, absl::string_view name);
// INVALID_ARGUMENT naming `field` when `name` is not
// studies/{study}/trials/{number}.
absl::StatusOr<TrialName> ParseTrialName(absl::string_view field,
                                         absl::string_view name);

std::string FormatStudyName(absl::string_view study_id);
std::string FormatTrialName(absl::string_view study_name, TrialNumber number);

// The store knows ids only: its NOT_FOUND about a trial, told by name. Other
// statuses stay as they are.
absl::Status WithTrialName(const absl::Status& status,
                           absl::string_view study_name, TrialNumber number);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_RESOURCE_NAME_H_
