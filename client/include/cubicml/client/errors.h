// SPDX-License-Identifier: Apache-2.0
//
// What the status of a failed call says beside its code and message.

#ifndef CUBICML_CLIENT_ERRORS_H_
#define CUBICML_CLIENT_ERRORS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cubicml {

// The field of the request that the service refused, such as
// "parameters[2].integer.max".
std::optional<std::string> FieldOf(const absl::Status& status);

// When to ask again.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// The server cannot be reached, is starting or draining, or did not answer in
// time: nothing is wrong with the request.
bool IsServerAway(const absl::Status& status);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_ERRORS_H_
