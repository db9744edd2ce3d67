// SPDX-License-Identifier: Apache-2.0
//
// What a job is given of its configuration: a JSON file and environment
// variables.

#ifndef CUBICML_CLIENT_CLI_RUN_JOB_FILES_H_
#define CUBICML_CLIENT_CLI_RUN_JOB_FILES_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cubicml/client/values.h"

namespace cubicml {

// A folder for one job's files; removed with them. Not thread-safe.
class JobFolder {
 public:
  // Within `parent`, such as $TMPDIR.
  static absl::StatusOr<JobFolder> Create(const std::string& parent);
  JobFolder(JobFolder&& other) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;
  ~JobFolder();

  std::string PathOf(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty when moved from
};

// {"tp": 8, "sharding": ["full", "none"]}
absl::Status WriteParametersFile(const std::string& path, const Values& active);

// The whole file, or nothing when it is not there or cannot be read.
std::optional<std::string> ReadFileIfThere(const std::string& path);

// `inherited` (NAME=VALUE) with the values of `set` instead of its own, and
// without CUBICML_PARAM_* of an outer run.
std::vector<std::string> MergeEnvironment(
    const std::vector<std::string>& inherited,
    const std::map<std::string, std::string>& set);

// CUBICML_PARAM_TP, the variable of the parameter tp.
std::string ParameterVariable(const std::string& parameter);
// CUBICML_PARAM_TP=8 for each active parameter.
std::map<std::string, std::string> ParameterVariables(const Values& active);

// The environment of this process.
std::vector<std::string> OwnEnvironment();

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_JOB_FILES_H_
