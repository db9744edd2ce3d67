// SPDX-License-Identifier: Apache-2.0
//
// cubicml replay: runs the program cubicml-replay, which stands beside this
// one. A program of its own because it holds the whole tuner, LibTorch
// included, and the command line should start at once.

#ifndef CUBICML_CLIENT_CLI_REPLAY_COMMAND_H_
#define CUBICML_CLIENT_CLI_REPLAY_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace cubicml {

// Becomes the program. Returns only when it cannot: NOT_FOUND.
absl::Status ExecReplay(const std::vector<std::string>& arguments);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_REPLAY_COMMAND_H_
