// SPDX-License-Identifier: Apache-2.0
//
// Names of studies and trials as people write them, turned into the service's.

#ifndef CUBICML_CLIENT_RESOURCE_NAMES_H_
#define CUBICML_CLIENT_RESOURCE_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

// "ads" or "studies/ads" -> "studies/ads". INVALID_ARGUMENT for anything that
// is not a study's id or name.
absl::StatusOr<std::string> ParseStudyName(absl::string_view text);

// "ads/7", "studies/ads/trials/7" -> "studies/ads/trials/7".
absl::StatusOr<std::string> ParseTrialName(absl::string_view text);

// "studies/ads/trials/7" -> "ads", 7. REQUIRES: a name that ParseTrialName()
// or the service made; otherwise "" and 0.
std::string StudyIdOf(absl::string_view name);
int64_t TrialNumberOf(absl::string_view name);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_RESOURCE_NAMES_H_
