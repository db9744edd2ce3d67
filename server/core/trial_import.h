// SPDX-License-Identifier: Apache-2.0
//
// Measurements of jobs that the service did not hand out.

#ifndef CUBICML_SERVER_CORE_TRIAL_IMPORT_H_
#define CUBICML_SERVER_CORE_TRIAL_IMPORT_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/study_state.h"

namespace cubicml {

// Checks trials in the order in which they come. Each is compared with what
// baselines measured before it, in the study or in this import, so that the
// outcome does not depend on how the import is cut into messages.
// Not thread-safe.
class ImportCheck {
 public:
  explicit ImportCheck(StudyState* study) : study_(*study) {}

  // The trial to store: what was given, with its values in the types of the
  // study, and all that the service sets itself. INVALID_ARGUMENT naming the
  // field of the trial; RESOURCE_EXHAUSTED for one context too many.
  absl::StatusOr<v1::Trial> Check(const v1::Trial& given, absl::Time now);

 private:
  absl::Status Judge(const Context& context, const std::string& key,
                     v1::Trial* trial);

  StudyState& study_;
  std::map<std::string, StudyState::ContextBaseline> baselines_;  // by context
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TRIAL_IMPORT_H_
