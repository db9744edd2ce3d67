// SPDX-License-Identifier: Apache-2.0

#include "client/retry.h"

#include <algorithm>
#include <cmath>

#include "cubicml/client/errors.h"

namespace cubicml {

RetryPolicy::RetryPolicy(const RetryOptions& options, bool wait_for_ready,
                         Repeatable repeatable, Rng rng)
    : options_(options),
      wait_for_ready_(wait_for_ready),
      repeatable_(repeatable),
      rng_(rng) {}

bool RetryPolicy::MayRetry(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      // Overload says when to come back. Without that it is a message that is
      // too large, which will be as large next time. It was not carried out.
      return RetryDelayOf(status).has_value();
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnknown:
      // The connection may have gone after the server had done its work.
      return repeatable_ == Repeatable::kYes;
    default:
      return false;
  }
}

absl::Duration RetryPolicy::Backoff() {
  const double growth =
      std::pow(options_.backoff_multiplier, std::max(0, attempts_ - 1));
  const absl::Duration backoff =
      std::min(options_.initial_backoff * growth, options_.max_backoff);
  return backoff * (1 + options_.jitter * (2 * rng_.Uniform() - 1));
}

std::optional<absl::Duration> RetryPolicy::NextDelay(const absl::Status& status,
                                                     absl::Duration remaining) {
  ++attempts_;
  if (!MayRetry(status)) return std::nullopt;
  const bool forever =
      wait_for_ready_ && status.code() == absl::StatusCode::kUnavailable;
  if (!forever && attempts_ >= options_.max_attempts) return std::nullopt;
  absl::Duration delay = Backoff();
  if (const std::optional<absl::Duration> told = RetryDelayOf(status)) {
    // Later than told, never earlier, and not all clients at one moment.
    delay = std::max(delay, *told * (1 + options_.jitter * rng_.Uniform()));
  }
  if (delay >= remaining) return std::nullopt;
  return delay;
}

absl::Status RetryCall(
    RetryPolicy policy, absl::Duration timeout, absl::Duration attempt_timeout,
    Waiter* waiter,
    const std::function<absl::Status(absl::Duration timeout)>& attempt) {
  const absl::Duration deadline = waiter->Elapsed() + timeout;
  while (true) {
    const absl::Duration remaining = deadline - waiter->Elapsed();
    absl::Status status = attempt(std::min(remaining, attempt_timeout));
    if (status.ok()) return status;
    const std::optional<absl::Duration> delay =
        policy.NextDelay(status, deadline - waiter->Elapsed());
    if (!delay.has_value()) return status;
    waiter->Wait(*delay);
  }
}

}  // namespace cubicml
