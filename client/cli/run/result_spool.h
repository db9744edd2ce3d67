// SPDX-License-Identifier: Apache-2.0
//
// Results that could not be delivered because the server was away, kept on disk
// until a later `cubicml run` delivers them.

#ifndef CUBICML_CLIENT_CLI_RUN_RESULT_SPOOL_H_
#define CUBICML_CLIENT_CLI_RUN_RESULT_SPOOL_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

// Several processes may use one folder: the request_id of a result makes its
// delivery happen once, whoever delivers it.
class ResultSpool {
 public:
  // `folder` need not exist. Results of different servers are kept apart.
  ResultSpool(std::string folder, absl::string_view server);

  // Keeps the result, durably. REQUIRES: it has a request_id.
  absl::Status Add(const v1::CompleteTrialRequest& request) const;

  struct Report {
    int delivered = 0;
    int refused = 0;  // the service will never take it: renamed to *.refused
    int left = 0;     // the server is away again
    absl::Status last_refusal;
  };
  // Sends each result, oldest first, until `send` says that the server is away.
  Report Deliver(
      const std::function<absl::Status(const v1::CompleteTrialRequest&)>& send)
      const;

  // Does a result of this trial wait for delivery?
  bool Holds(absl::string_view trial) const;

  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
};

// "127.0.0.1:7264" -> "127.0.0.1_7264": a server's name in a file's name.
std::string FileNameOf(absl::string_view server);

// Writes a file whole or not at all, durably; makes its folders.
absl::Status WriteFileDurably(const std::string& path, absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_RESULT_SPOOL_H_
