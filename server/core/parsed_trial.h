// SPDX-License-Identifier: Apache-2.0
//
// A stored trial in the terms of its study's search space.

#ifndef CUBICML_SERVER_CORE_PARSED_TRIAL_H_
#define CUBICML_SERVER_CORE_PARSED_TRIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/search_space.h"
#include "server/core/study_definition.h"

namespace cubicml {

struct ParsedTrial {
  v1::Trial trial;
  TrialNumber number;
  Context context;
  Point point;
  std::string key;  // SearchSpace::PointKey
};

// For trials that were accepted once: what a living study gained since then is
// filled in. INVALID_ARGUMENT when it does not fit the study at all.
absl::StatusOr<ParsedTrial> ParseStoredTrial(const StudyDefinition& definition,
                                             v1::Trial trial);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_PARSED_TRIAL_H_
