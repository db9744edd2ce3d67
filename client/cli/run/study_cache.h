// SPDX-License-Identifier: Apache-2.0
//
// What `cubicml run` remembers of a study, so that a job can run on the
// baseline while the server is away.

#ifndef CUBICML_CLIENT_CLI_RUN_STUDY_CACHE_H_
#define CUBICML_CLIENT_CLI_RUN_STUDY_CACHE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Two files in a folder for each server and study: the study, and the baseline
// that was handed out last. Not thread-safe; several processes may use one
// folder, the last one to write wins.
class StudyCache {
 public:
  StudyCache(std::string folder, absl::string_view server);

  absl::Status SaveStudy(const v1::Study& study) const;
  std::optional<v1::Study> LoadStudy(absl::string_view study_name) const;

  // The configuration of a baseline trial, by its context. It knows which
  // conditional parameters are active, which the study alone does not tell.
  absl::Status SaveBaseline(const v1::Trial& trial) const;
  // The one of this context (as given to the service, or as filled in by it).
  std::optional<Values> LoadBaseline(absl::string_view study_name,
                                     const Values& context) const;

 private:
  std::string PathOf(absl::string_view study_name,
                     absl::string_view extension) const;
  const std::string folder_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_STUDY_CACHE_H_
