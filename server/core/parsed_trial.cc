// SPDX-License-Identifier: Apache-2.0

#include "server/core/parsed_trial.h"

#include <utility>

#include "base/status_macros.h"
#include "server/core/resource_name.h"

namespace cubicml {

absl::StatusOr<ParsedTrial> ParseStoredTrial(const StudyDefinition& definition,
                                             v1::Trial trial) {
  ParsedTrial parsed;
  CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                           ParseTrialName("name", trial.name()));
  parsed.number = name.number;
  CUBICML_ASSIGN_OR_RETURN(parsed.context,
                           definition.space()->ParseContext(trial.context()));
  CUBICML_ASSIGN_OR_RETURN(
      parsed.point,
      definition.space()->ParseStoredPoint(trial.parameters(), parsed.context));
  parsed.key = definition.space()->PointKey(parsed.point);
  parsed.trial = std::move(trial);
  return parsed;
}

}  // namespace cubicml
