// SPDX-License-Identifier: Apache-2.0
//
// The best configurations of a study.

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

// The best configurations, each by its first trial that worked: of one
// objective the `limit` best, the best first; of several the Pareto front, by
// the first objective, at most `limit`. A configuration of a context is as good
// as its trials that worked are on average, and none if it failed as often.
// Only trials with all objectives count, in groups that `matches` has. O(n log
// n) for up to two objectives, O(n * front) for more.
std::vector<TrialNumber> FindOptimalTrials(const StudyDefinition& definition,
                                           const RowLog::Snapshot& rows,
                                           const std::vector<bool>& matches,
                                           size_t limit);

// Indices into `rows` of the first trials of the configurations of one group,
// by the mean of the first objective, the best first.
std::vector<size_t> RankConfigurations(const StudyDefinition& definition,
                                       const RowLog::Snapshot& rows, int group);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_OPTIMAL_TRIALS_H_
