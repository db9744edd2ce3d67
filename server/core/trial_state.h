// SPDX-License-Identifier: Apache-2.0
//
// The states of a trial and the ways between them, in one table.

#ifndef CUBICML_SERVER_CORE_TRIAL_STATE_H_
#define CUBICML_SERVER_CORE_TRIAL_STATE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Someone holds a lease on it.
bool IsHeld(v1::Trial::State state);
// It says something about its configuration.
bool IsMeasured(v1::Trial::State state);
// Its attempt was lost, and its configuration may be handed out again.
bool IsLost(v1::Trial::State state);

bool IsLegalTransition(v1::Trial::State from, v1::Trial::State to);
// FAILED_PRECONDITION that says that the trial has ended, how and when.
absl::Status EndedError(const v1::Trial& trial);
// OK, or FAILED_PRECONDITION that says which state the trial is in.
absl::Status CheckTransition(const v1::Trial& trial, v1::Trial::State to,
                             absl::string_view call);

// Whether a trial that ends in this state may give this reason.
bool ReasonFits(v1::Trial::Reason reason, v1::Trial::State state);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TRIAL_STATE_H_
