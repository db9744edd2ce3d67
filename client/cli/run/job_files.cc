// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/job_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json_views.h"
#include "client/cli/output.h"

namespace cubicml {
namespace {

constexpr absl::string_view kParameterPrefix = "CUBICML_PARAM_";

}  // namespace

absl::StatusOr<JobFolder> JobFolder::Create(const std::string& parent) {
  std::string path = parent + "/cubicml-run-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make a folder in ", parent));
  }
  return JobFolder(std::move(path));
}

JobFolder::JobFolder(JobFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

JobFolder::~JobFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::Status WriteParametersFile(const std::string& path,
                                 const Values& active) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  Json json = Json::object();
  for (const auto& [name, value] : active) json[name] = ValueToJson(value);
  const absl::Status status = WriteAll(descriptor, FormatJson(json));
  close(descriptor);
  return status;
}

std::optional<std::string> ReadFileIfThere(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> MergeEnvironment(
    const std::vector<std::string>& inherited,
    const std::map<std::string, std::string>& set) {
  std::vector<std::string> merged;
  for (const std::string& variable : inherited) {
    const std::string name = variable.substr(0, variable.find('='));
    if (set.count(name) > 0 || absl::StartsWith(name, kParameterPrefix)) {
      continue;
    }
    merged.push_back(variable);
  }
  for (const auto& [name, value] : set) {
    merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

std::string ParameterVariable(const std::string& parameter) {
  return absl::StrCat(kParameterPrefix, absl::AsciiStrToUpper(parameter));
}

std::map<std::string, std::string> ParameterVariables(const Values& active) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : active) {
    variables[ParameterVariable(name)] = FormatValue(value);
  }
  return variables;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

}  // namespace cubicml
