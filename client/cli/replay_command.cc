// SPDX-License-Identifier: Apache-2.0

#include "client/cli/replay_command.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

constexpr char kProgram[] = "cubicml-replay";

}  // namespace

absl::Status ExecReplay(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(kProgram)};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string beside = self.parent_path() / kProgram;
  if (!error) execv(beside.c_str(), argv.data());
  execvp(kProgram, argv.data());
  return absl::NotFoundError(
      absl::StrCat(kProgram, " is neither beside this program (", beside,
                   ") nor in PATH; it is a part of the server's build"));
}

}  // namespace cubicml
