// SPDX-License-Identifier: Apache-2.0
//
// Chooses the configurations that SuggestTrials hands out: lost ones first,
// then the baseline, the initial design, and what the model makes of the rest.

#ifndef CUBICML_SERVER_CORE_SUGGESTION_H_
#define CUBICML_SERVER_CORE_SUGGESTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "server/core/search_deadline.h"
#include "server/core/search_task.h"
#include "server/core/study_state.h"

namespace cubicml {

// When a call that was answered BUSY may try again.
inline constexpr absl::Duration kBusyRetryDelay = absl::Seconds(1);

struct SuggestionCall {
  SuggestionNeed need;
  Context context;
  size_t count = 1;
  v1::SuggestTrialsRequest::Mode mode = v1::SuggestTrialsRequest::EXPLORE;
  absl::Duration deadline;  // on Clock::Elapsed
};

struct SuggestionChoice {
  // Reserved: each must become a trial, or be given to StudyState::Release.
  std::vector<Pick> picks;
  // Why there are fewer than asked for.
  v1::SuggestTrialsResponse::NoTrialReason reason =
      v1::SuggestTrialsResponse::NO_TRIAL_REASON_UNSPECIFIED;
  std::string detail;
  absl::Duration retry_delay;  // 0: asking again is no use
};

// Returns before the deadline. FAILED_PRECONDITION when the study's algorithm
// cannot search its space, or the baseline that was asked for is not valid.
absl::StatusOr<SuggestionChoice> ChooseConfigurations(
    const SuggestionCall& call, const Clock& clock, SearchTimer* timer,
    StudyState* study);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_SUGGESTION_H_
