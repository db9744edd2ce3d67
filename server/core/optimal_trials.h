// SPDX-License-Identifier: Apache-2.0
//
// The best trials of a study.

#ifndef CUBICML_SERVER_CORE_OPTIMAL_TRIALS_H_
#define CUBICML_SERVER_CORE_OPTIMAL_TRIALS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "predictor/search_space.h"
#include "server/core/row_log.h"
#include "server/core/study_definition.h"

namespace cubicml {

// Which contexts have these values; the result has an entry for each. Values
// are compared by number, so 8 and 8.0 are equal. INVALID_ARGUMENT naming
// "context.FIELD" for one that the study does not declare or of another type.
absl::StatusOr<std::vector<bool>> MatchContexts(
    const StudyDefinition& definition, const std::vector<Context>& contexts,
    const ValueMap& wanted);

// Of one objective the `limit` best, the best first; of several the Pareto
// front, by the first objective, at most `limit`. A trial is as good as its
// configuration is on average over its trials. Only feasible rows with all
// objectives, in groups that `matches` has. O(n log n) for up to two
// objectives, O(n * front) for more.
std::vector<TrialNumber> FindOptimalTrials(const StudyDefinition& definition,
                                           const RowLog::Snapshot& rows,
                                           const std::vector<bool>& matches,
                                           size_t limit);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_OPTIMAL_TRIALS_H_
