// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/call_deadline.h"

#include <chrono>

namespace cubicml {

absl::Duration CallDeadline(const grpc::CallbackServerContext& context,
                            const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InfiniteDuration();
  }
  return clock.Elapsed() + (absl::FromChrono(deadline) - clock.Now());
}

absl::Status CheckAwaited(const grpc::CallbackServerContext& context,
                          const Clock& clock) {
  if (CallDeadline(context, clock) <= clock.Elapsed()) {
    return absl::DeadlineExceededError(
        "the deadline passed before there was an answer");
  }
  if (context.IsCancelled()) {
    return absl::CancelledError("the client went away");
  }
  return absl::OkStatus();
}

}  // namespace cubicml
