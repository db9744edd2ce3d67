// SPDX-License-Identifier: Apache-2.0
//
// What was handed out as the baseline.

#ifndef CUBICML_CLIENT_CLI_BASELINE_TRIAL_H_
#define CUBICML_CLIENT_CLI_BASELINE_TRIAL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/typed_values.h"
#include "cubicml/client/tuning_client.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// The first baseline of the study in exactly this context, of those that the
// filter lets through, which may be empty; nullopt where there is none. Reads
// the baselines of all contexts. The codes of ListTrials.
absl::StatusOr<std::optional<v1::Trial>> FindBaselineTrial(
    TuningClient* client, const std::string& study, const ValueMap& context,
    const std::string& filter, const CallOptions& options = {});

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_BASELINE_TRIAL_H_
