// SPDX-License-Identifier: Apache-2.0
//
// The command line of `cubicml`: which commands and options there are.

#ifndef CUBICML_CLIENT_CLI_COMMAND_LINE_H_
#define CUBICML_CLIENT_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "client/cli/command_session.h"

namespace cubicml {

// Carries out the command. Returns the exit code of exit_codes.h; messages go
// to standard error.
int RunCommandLine(const std::vector<std::string>& arguments,
                   const Environment& environment);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_COMMAND_LINE_H_
