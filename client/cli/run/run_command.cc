// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/run_command.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "client/cli/run/command_template.h"
#include "client/cli/run/job_session.h"
#include "client/request_id.h"

namespace cubicml {
namespace {

std::string CacheFolder(const Environment& environment) {
  const std::string cache = environment("XDG_CACHE_HOME").value_or("");
  if (!cache.empty() && cache.front() == '/') return cache + "/cubicml";
  const std::string home = environment("HOME").value_or("");
  if (!home.empty()) return home + "/.cache/cubicml";
  return absl::StrCat("/tmp/cubicml-", getuid());
}

// As shells tell that a program cannot be started.
int StartFailureCode(const absl::Status& status) {
  if (absl::IsPermissionDenied(status)) return kExitCannotExecute;
  return kExitNoSuchProgram;
}

}  // namespace

absl::StatusOr<int> Run(const GlobalOptions& global,
                        const RunOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(CommandTemplate command,
                           CommandTemplate::Parse(options.command));
  GlobalOptions patient = global;
  patient.wait_for_server = true;
  CUBICML_ASSIGN_OR_RETURN(CommandSession session,
                           CommandSession::Create(std::move(patient)));
  RunOptions named = options;
  if (named.client_id.empty()) {
    // Its own, so that it never gets the trial of another job that runs.
    named.client_id = absl::StrCat("run-", NewRequestId());
  }
  JobSession jobs(std::move(session), &named, std::move(command),
                  CacheFolder(global.environment));
  absl::StatusOr<int> code = jobs.Run();
  if (!code.ok() && jobs.failed_to_start()) {
    jobs.Say(code.status().message());
    return StartFailureCode(code.status());
  }
  return code;
}

}  // namespace cubicml
