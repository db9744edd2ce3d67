// SPDX-License-Identifier: Apache-2.0
//
// What a user of the installed library writes. There is no server: the call
// must fail in time and say where it looked.

#include <iostream>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "cubicml/client/errors.h"
#include "cubicml/client/tuning_client.h"

int main() {
  // Nobody listens on port 1 of a machine that runs tests.
  absl::StatusOr<std::unique_ptr<cubicml::TuningClient>> client =
      cubicml::TuningClient::Create(
          {.server = "127.0.0.1:1", .timeout = absl::Seconds(1)});
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 1;
  }
  const absl::StatusOr<cubicml::TrialHandle> trial = (*client)->StartTrial(
      {.study = "example", .context = cubicml::MakeValues({{"gpus", 8}})});
  if (trial.ok() || !cubicml::IsServerAway(trial.status()) ||
      !absl::StrContains(trial.status().message(), "127.0.0.1:1")) {
    std::cerr << "expected a server that is away: " << trial.status() << "\n";
    return 1;
  }
  return 0;
}
