// SPDX-License-Identifier: Apache-2.0
//
// What calls do to one trial: pure functions that StudyStore::UpdateTrial
// applies to the stored trial. Each either changes it, or returns why not.

#ifndef CUBICML_SERVER_CORE_TRIAL_CHANGE_H_
#define CUBICML_SERVER_CORE_TRIAL_CHANGE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "server/core/study_definition.h"

namespace cubicml {

// What a change returns when the trial already is what was asked for: nothing
// is to be stored, and the trial as it is is the answer.
absl::Status AlreadySo();
bool IsAlreadySo(const absl::Status& status);

// INVALID_ARGUMENT for what can be refused without looking at the trial.
absl::Status CheckCompletion(const v1::CompleteTrialRequest& request,
                             const StudyDefinition& definition);
// Ends it with its outcome. FAILED_PRECONDITION when another client holds it,
// or it has ended otherwise. REQUIRES: CheckCompletion was OK.
absl::Status ApplyCompletion(const v1::CompleteTrialRequest& request,
                             const StudyDefinition& definition,
                             const BaselineMetrics& baseline, absl::Time now,
                             v1::Trial* trial);

// INVALID_ARGUMENT for an intermediate measurement that cannot be.
absl::Status CheckHeartbeat(const v1::HeartbeatRequest& request,
                            const StudyDefinition& definition);
// Renews the lease. An expired trial becomes active again when `revive`.
// AlreadySo for a trial that is to stop and has no lease any more;
// FAILED_PRECONDITION when another client holds it, or it has ended.
absl::Status ApplyHeartbeat(const v1::HeartbeatRequest& request,
                            absl::Duration lease, bool revive, absl::Time now,
                            v1::Trial* trial);
// For a client that asks again while it holds the trial. AlreadySo when it is
// not active any more.
absl::Status ApplyRenewal(absl::Duration lease, absl::Time now,
                          v1::Trial* trial);

// ACTIVE is asked to stop; everything else that has no measurement ends.
absl::Status ApplyCancellation(absl::Time now, v1::Trial* trial);

// Ends a trial whose lease, that ended at `seen`, has lapsed. AlreadySo when
// it was renewed or ended meanwhile.
absl::Status ApplyExpiry(absl::Time seen, absl::Time now, v1::Trial* trial);

// The outcome of a measurement that claims success: INFEASIBLE where it
// violates a metric constraint.
void ApplyMetricConstraints(const StudyDefinition& definition,
                            const BaselineMetrics& baseline, v1::Trial* trial);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TRIAL_CHANGE_H_
