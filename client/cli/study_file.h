// SPDX-License-Identifier: Apache-2.0
//
// Study files: a study as people write it (docs/study-files.md), read into
// study.proto and written back.

#ifndef CUBICML_CLIENT_CLI_STUDY_FILE_H_
#define CUBICML_CLIENT_CLI_STUDY_FILE_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

struct StudyFile {
  std::string file_name;
  v1::Study study;  // without a name
  // The key `id`, when there is one.
  std::optional<std::string> id;
  // The fields of the study that the file sets, as in a field mask.
  std::vector<std::string> fields;
  // Line of each field, by path within the file ("parameters[2].scale").
  std::map<std::string, int> lines;
};

// INVALID_ARGUMENT "FILE:LINE: field: what is wrong". What only the service
// can judge (expressions, defaults within their domain) is left to it.
absl::StatusOr<StudyFile> ParseStudyFile(absl::string_view text,
                                         absl::string_view file_name);

// The service's refusal of the study, with "FILE:LINE: " before its message
// when the status names a field.
absl::Status LocateError(const StudyFile& file, const absl::Status& status);

// The study with the keys of a study file, then what the service set (etag,
// create_time, update_time, progress), which ParseStudyFile() skips.
nlohmann::ordered_json StudyToJson(const v1::Study& study);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_STUDY_FILE_H_
