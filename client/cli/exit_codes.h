// SPDX-License-Identifier: Apache-2.0
//
// What `cubicml` exits with (docs/cli.md). Scripts depend on these numbers:
// they are never changed. `cubicml run` exits as its job does.

#ifndef CUBICML_CLIENT_CLI_EXIT_CODES_H_
#define CUBICML_CLIENT_CLI_EXIT_CODES_H_

#include "absl/status/status.h"

namespace cubicml {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
// The command line, a file, or the request is wrong (INVALID_ARGUMENT).
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotFound = 3;
inline constexpr int kExitServerAway = 4;
// The state does not allow it: ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED.
inline constexpr int kExitConflict = 5;
// The service has no configuration to hand out.
inline constexpr int kExitNoTrial = 6;
// Some of the imported trials were refused.
inline constexpr int kExitPartial = 7;
// As in shells: the program of `run` cannot be executed, or does not exist.
inline constexpr int kExitCannotExecute = 126;
inline constexpr int kExitNoSuchProgram = 127;

int ExitCodeOf(const absl::Status& status);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_EXIT_CODES_H_
