// SPDX-License-Identifier: Apache-2.0
//
// The program `cubicml`.

#include <stdlib.h>

#include <optional>
#include <string>
#include <vector>

#include "client/cli/command_line.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return cubicml::RunCommandLine(
      arguments, [](const std::string& name) -> std::optional<std::string> {
        const char* value = getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional(value);
      });
}
