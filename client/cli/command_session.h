// SPDX-License-Identifier: Apache-2.0
//
// What every command of the command line works with: the server, the output
// format, and where to write.

#ifndef CUBICML_CLIENT_CLI_COMMAND_SESSION_H_
#define CUBICML_CLIENT_CLI_COMMAND_SESSION_H_

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/output.h"
#include "cubicml/client/tuning_client.h"

namespace cubicml {

// Reads a variable of the environment.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;

struct GlobalOptions {
  std::string server;
  absl::Duration timeout;  // of a call
  // Go on trying for all of the timeout while the server cannot be reached.
  bool wait_for_server = false;
  OutputFormat output = OutputFormat::kTable;
  Environment environment;
};

// Not thread-safe.
class CommandSession {
 public:
  static absl::StatusOr<CommandSession> Create(GlobalOptions options);

  TuningClient& client() { return *client_; }
  const GlobalOptions& options() const { return options_; }

  // The study by id or name.
  absl::StatusOr<v1::Study> GetStudy(absl::string_view study);

  // Values, to standard output.
  absl::Status Print(const nlohmann::ordered_json& json, const Table& table);
  absl::Status PrintText(absl::string_view text);
  // A line for people, to standard error.
  void SayLine(absl::string_view line) const;
  // A message: a line with "cubicml: " before it.
  void Say(absl::string_view message) const;

 private:
  CommandSession(GlobalOptions options, std::unique_ptr<TuningClient> client);

  GlobalOptions options_;
  std::unique_ptr<TuningClient> client_;
};

// The whole file, or standard input for "-". NOT_FOUND becomes
// INVALID_ARGUMENT: the command line names a file that is not there.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_COMMAND_SESSION_H_
