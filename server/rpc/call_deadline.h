// SPDX-License-Identifier: Apache-2.0
//
// Whether, and for how long, somebody waits for the answer of a call.

#ifndef CUBICML_SERVER_RPC_CALL_DEADLINE_H_
#define CUBICML_SERVER_RPC_CALL_DEADLINE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "grpcpp/server_context.h"

namespace cubicml {

// When the client stops waiting, on Clock::Elapsed(); InfiniteDuration() when
// it gave no deadline.
absl::Duration CallDeadline(const grpc::CallbackServerContext& context,
                            const Clock& clock);

// CANCELLED or DEADLINE_EXCEEDED when nobody waits for the answer any more.
absl::Status CheckAwaited(const grpc::CallbackServerContext& context,
                          const Clock& clock);

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_CALL_DEADLINE_H_
