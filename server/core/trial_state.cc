// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_state.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/core/time_proto.h"

namespace cubicml {
namespace {

struct Transition {
  v1::Trial::State from;
  v1::Trial::State to;
};

// ACTIVE and STOPPING to themselves is a heartbeat.
constexpr Transition kTransitions[] = {
    {v1::Trial::ACTIVE, v1::Trial::ACTIVE},
    {v1::Trial::ACTIVE, v1::Trial::STOPPING},    // CancelTrial
    {v1::Trial::ACTIVE, v1::Trial::SUCCEEDED},   // CompleteTrial
    {v1::Trial::ACTIVE, v1::Trial::INFEASIBLE},  // CompleteTrial
    {v1::Trial::ACTIVE, v1::Trial::ABANDONED},   // CompleteTrial
    {v1::Trial::ACTIVE, v1::Trial::EXPIRED},     // the lease lapsed
    {v1::Trial::STOPPING, v1::Trial::STOPPING},
    {v1::Trial::STOPPING, v1::Trial::SUCCEEDED},
    {v1::Trial::STOPPING, v1::Trial::INFEASIBLE},
    {v1::Trial::STOPPING, v1::Trial::ABANDONED},
    {v1::Trial::STOPPING, v1::Trial::CANCELLED},  // again, or the lease lapsed
    {v1::Trial::EXPIRED, v1::Trial::ACTIVE},     // its holder came back in time
    {v1::Trial::EXPIRED, v1::Trial::SUCCEEDED},  // late, and still real
    {v1::Trial::EXPIRED, v1::Trial::INFEASIBLE},  // late, and still real
    {v1::Trial::EXPIRED, v1::Trial::ABANDONED},   // its holder gave up too
    {v1::Trial::EXPIRED, v1::Trial::CANCELLED},
    {v1::Trial::ABANDONED, v1::Trial::CANCELLED},
};

}  // namespace

bool IsHeld(v1::Trial::State state) {
  return state == v1::Trial::ACTIVE || state == v1::Trial::STOPPING;
}

bool IsMeasured(v1::Trial::State state) {
  return state == v1::Trial::SUCCEEDED || state == v1::Trial::INFEASIBLE;
}

bool IsLost(v1::Trial::State state) {
  return state == v1::Trial::ABANDONED || state == v1::Trial::EXPIRED;
}

bool IsLegalTransition(v1::Trial::State from, v1::Trial::State to) {
  for (const Transition& transition : kTransitions) {
    if (transition.from == from && transition.to == to) return true;
  }
  return false;
}

absl::Status EndedError(const v1::Trial& trial) {
  std::string since;
  if (trial.has_end_time()) {
    since = absl::StrCat(
        " since ",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", TimeFromProto(trial.end_time()),
                         absl::UTCTimeZone()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(trial.name(), " has ended already: it is ",
                   v1::Trial::State_Name(trial.state()), since));
}

absl::Status CheckTransition(const v1::Trial& trial, v1::Trial::State to,
                             absl::string_view call) {
  if (IsLegalTransition(trial.state(), to)) return absl::OkStatus();
  if (!IsHeld(trial.state())) return EndedError(trial);
  return absl::FailedPreconditionError(
      absl::StrCat(trial.name(), " is ", v1::Trial::State_Name(trial.state()),
                   "; ", call, " cannot make it ", v1::Trial::State_Name(to)));
}

bool ReasonFits(v1::Trial::Reason reason, v1::Trial::State state) {
  switch (state) {
    case v1::Trial::SUCCEEDED:
      return reason == v1::Trial::REASON_UNSPECIFIED;
    case v1::Trial::INFEASIBLE:
      return reason != v1::Trial::PREEMPTED && reason != v1::Trial::INTERRUPTED;
    case v1::Trial::ABANDONED:
      return reason == v1::Trial::REASON_UNSPECIFIED ||
             reason == v1::Trial::PREEMPTED ||
             reason == v1::Trial::INTERRUPTED || reason == v1::Trial::OTHER;
    default:
      return false;
  }
}

}  // namespace cubicml
