// SPDX-License-Identifier: Apache-2.0
//
// cubicml study create | get | list | update | delete. Each returns the exit
// code, or the error that decides it.

#ifndef CUBICML_CLIENT_CLI_STUDY_COMMANDS_H_
#define CUBICML_CLIENT_CLI_STUDY_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command_session.h"

namespace cubicml {

struct StudyOptions {
  std::string study;  // of get, update, delete
  std::string file;   // of create, update; "-" is standard input
  std::string id;
  bool validate_only = false;
  std::string filter;
  std::string order_by;
  int limit = 0;  // 0: all
  bool force = false;
  std::string etag;
};

absl::StatusOr<int> CreateStudy(CommandSession* session,
                                const StudyOptions& options);
absl::StatusOr<int> GetStudy(CommandSession* session,
                             const StudyOptions& options);
absl::StatusOr<int> ListStudies(CommandSession* session,
                                const StudyOptions& options);
absl::StatusOr<int> UpdateStudy(CommandSession* session,
                                const StudyOptions& options);
absl::StatusOr<int> DeleteStudy(CommandSession* session,
                                const StudyOptions& options);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_STUDY_COMMANDS_H_
