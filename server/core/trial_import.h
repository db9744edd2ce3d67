// SPDX-License-Identifier: Apache-2.0
//
// Measurements of jobs that the service did not hand out.

#ifndef CUBICML_SERVER_CORE_TRIAL_IMPORT_H_
#define CUBICML_SERVER_CORE_TRIAL_IMPORT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/study_state.h"

namespace cubicml {

// The trial to store: what was given, with its values in the types of the
// study, and all that the service sets itself. INVALID_ARGUMENT naming the
// field of the trial.
absl::StatusOr<v1::Trial> CheckImport(const v1::Trial& given,
                                      const StudyState& study, absl::Time now);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TRIAL_IMPORT_H_
