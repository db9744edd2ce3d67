// SPDX-License-Identifier: Apache-2.0
//
// cubicml trials export | trials import: a study's history as a file.

#ifndef CUBICML_CLIENT_CLI_TRANSFER_COMMANDS_H_
#define CUBICML_CLIENT_CLI_TRANSFER_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/command_session.h"

namespace cubicml {

struct TransferOptions {
  std::string study;
  std::string file = "-";  // standard input or output
  std::string format;      // csv or jsonl; by the file's name when empty
  std::string filter;      // of an export
  std::string status_column = "status";  // of an import
  bool dry_run = false;                  // of an import: only reads the file
  // Of an import, for trials that were imported before: refuse, skip or add.
  std::string existing = "refuse";
};

absl::StatusOr<int> ExportTrials(CommandSession* session,
                                 const TransferOptions& options);
absl::StatusOr<int> ImportTrials(CommandSession* session,
                                 const TransferOptions& options);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_TRANSFER_COMMANDS_H_
