// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/job_launch.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/run/job_files.h"
#include "client/cli/run/oom_killer.h"

namespace cubicml {
namespace {

absl::StatusOr<JobFolder> MakeFolder(const std::string& parent,
                                     const Values& active) {
  CUBICML_ASSIGN_OR_RETURN(JobFolder folder, JobFolder::Create(parent));
  CUBICML_RETURN_IF_ERROR(
      WriteParametersFile(folder.PathOf("params.json"), active));
  return folder;
}

// A full disk must not cost a job that reads no file.
absl::StatusOr<std::optional<JobFolder>> MakeFolderIfNeeded(
    const JobLaunch& launch, const Values& active) {
  absl::Status failure;
  for (const std::string& parent :
       {launch.environment("TMPDIR").value_or("/tmp"), std::string("/tmp")}) {
    absl::StatusOr<JobFolder> folder = MakeFolder(parent, active);
    if (folder.ok()) return std::optional<JobFolder>(*std::move(folder));
    failure.Update(folder.status());  // the first one stays
  }
  const bool needed = launch.command->Names("params_file") ||
                      (launch.command->Names("metrics_file") &&
                       launch.options->metrics_file.empty());
  if (needed) return absl::InternalError(failure.message());
  return std::nullopt;
}

std::map<std::string, std::string> JobVariables(const JobLaunch& launch,
                                                const TemplateValues& values) {
  std::map<std::string, std::string> variables =
      ParameterVariables(values.active);
  variables["CUBICML_TRIAL"] = values.words.at("trial");
  variables["CUBICML_STUDY"] = values.words.at("study");
  variables["CUBICML_PARAMS_FILE"] = values.words.at("params_file");
  variables["CUBICML_METRICS_FILE"] = values.words.at("metrics_file");
  variables["CUBICML_SERVER"] = launch.server;
  // Into a pipe Python would write kilobytes late.
  variables["PYTHONUNBUFFERED"] =
      launch.environment("PYTHONUNBUFFERED").value_or("1");
  return variables;
}

void ReadMetricsFile(const std::string& path, JobEvidence* evidence) {
  const std::optional<std::string> text = ReadFileIfThere(path);
  if (!text.has_value()) return;
  auto metrics = ParseMetricsFile(*text);
  if (metrics.ok()) {
    evidence->file_metrics = *std::move(metrics);
  } else {
    evidence->metrics_file_error =
        absl::StrCat(path, ": ", metrics.status().message());
  }
}

}  // namespace

absl::StatusOr<JobEvidence> LaunchJob(const JobLaunch& launch,
                                      TemplateValues values,
                                      SignalRelay* signals,
                                      const Clock* clock) {
  const RunOptions& options = *launch.options;
  CUBICML_ASSIGN_OR_RETURN(const std::optional<JobFolder> folder,
                           MakeFolderIfNeeded(launch, values.active));
  const auto path_of = [&folder](const char* name) {
    return folder.has_value() ? folder->PathOf(name) : "";
  };
  const std::string metrics_file = options.metrics_file.empty()
                                       ? path_of("metrics.json")
                                       : options.metrics_file;
  values.words.emplace("trial", "");
  values.words["study"] = launch.study_id;
  values.words["params_file"] = path_of("params.json");
  values.words["metrics_file"] = metrics_file;
  // What an earlier job left is not this one's measurement.
  std::error_code ignored;
  std::filesystem::remove(metrics_file, ignored);

  JobEvidence evidence;
  OutputScanner out(launch.patterns, &evidence.output);
  OutputScanner err(launch.patterns, &evidence.output);
  JobSpec spec;
  CUBICML_ASSIGN_OR_RETURN(spec.command, launch.command->Expand(values));
  spec.environment =
      MergeEnvironment(OwnEnvironment(), JobVariables(launch, values));
  spec.timeout = options.timeout;
  spec.grace = options.grace;
  spec.should_stop = launch.should_stop;
  spec.on_output = [&](bool is_error, absl::string_view chunk) {
    (is_error ? err : out).Feed(chunk);
  };
  const OomKillCounts before = OomKillCounts::Read();
  CUBICML_ASSIGN_OR_RETURN(evidence.end, RunJob(spec, signals, clock));
  out.Finish();
  err.Finish();
  const OomKillCounts after = OomKillCounts::Read();
  evidence.kernel_killed_for_memory = after.HasGrownSince(before);
  evidence.group_killed_for_memory = after.GroupHasGrownSince(before);
  evidence.out_of_memory_exit_codes = options.out_of_memory_exit_codes;
  ReadMetricsFile(metrics_file, &evidence);
  return evidence;
}

}  // namespace cubicml
