// SPDX-License-Identifier: Apache-2.0

#include "client/cli/command_session.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitServerAway;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return kExitConflict;
    default:
      return kExitFailed;
  }
}

CommandSession::CommandSession(GlobalOptions options,
                               std::unique_ptr<TuningClient> client)
    : options_(std::move(options)), client_(std::move(client)) {}

absl::StatusOr<CommandSession> CommandSession::Create(GlobalOptions options) {
  TuningClientOptions client_options;
  client_options.server = options.server;
  client_options.timeout = options.timeout;
  client_options.wait_for_ready = options.wait_for_server;
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<TuningClient> client,
                           TuningClient::Create(std::move(client_options)));
  return CommandSession(std::move(options), std::move(client));
}

absl::StatusOr<v1::Study> CommandSession::GetStudy(absl::string_view study) {
  v1::GetStudyRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(), ParseStudyName(study));
  return client_->GetStudy(request);
}

absl::Status CommandSession::Print(const nlohmann::ordered_json& json,
                                   const Table& table) {
  return PrintText(FormatAnswer(options_.output, json, table));
}

absl::Status CommandSession::PrintText(absl::string_view text) {
  return WriteAll(STDOUT_FILENO, text);
}

void CommandSession::SayLine(absl::string_view line) const {
  // Nothing is left to tell it to when standard error is gone.
  WriteAll(STDERR_FILENO, absl::StrCat(line, "\n")).IgnoreError();
}

void CommandSession::Say(absl::string_view message) const {
  SayLine(absl::StrCat("cubicml: ", message));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const bool standard_input = path == "-";
  const int descriptor =
      standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::strerror(errno)));
  }
  std::string text;
  char buffer[1 << 16];
  ssize_t count = 0;
  do {
    count = read(descriptor, buffer, sizeof(buffer));
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
  } while (count > 0 || (count < 0 && errno == EINTR));
  const int error = count < 0 ? errno : 0;
  if (!standard_input) close(descriptor);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::strerror(error)));
  }
  return text;
}

}  // namespace cubicml
