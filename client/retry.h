// SPDX-License-Identifier: Apache-2.0
//
// Which failed calls are sent again, and when. Knows no gRPC; used by
// ServerConnection for every call.

#ifndef CUBICML_CLIENT_RETRY_H_
#define CUBICML_CLIENT_RETRY_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/rng.h"
#include "cubicml/client/tuning_client_options.h"

namespace cubicml {

// May a call be sent again when it may have been carried out already?
enum class Repeatable {
  kNo,   // it would be carried out twice
  kYes,  // a read, or it carries a request_id
};

// One call's attempts. Not thread-safe; make one for each call.
class RetryPolicy {
 public:
  RetryPolicy(const RetryOptions& options, bool wait_for_ready,
              Repeatable repeatable, Rng rng);

  // The attempt ended with `status` and `remaining` is left of the call's time:
  // how long to wait before the next attempt, or nothing to give up.
  std::optional<absl::Duration> NextDelay(const absl::Status& status,
                                          absl::Duration remaining);

 private:
  bool MayRetry(const absl::Status& status) const;
  absl::Duration Backoff();

  const RetryOptions options_;
  const bool wait_for_ready_;
  const Repeatable repeatable_;
  Rng rng_;
  int attempts_ = 0;
};

// Time, as a call sees it; tests have their own. Thread-safe.
class Waiter {
 public:
  virtual ~Waiter() = default;
  // Time since some fixed moment.
  virtual absl::Duration Elapsed() const = 0;
  virtual void Wait(absl::Duration duration) = 0;
};

// Calls `attempt` with the time that it may take until it succeeds or `policy`
// gives up. `timeout` is for all attempts and the waits between them together.
absl::Status RetryCall(
    RetryPolicy policy, absl::Duration timeout, absl::Duration attempt_timeout,
    Waiter* waiter,
    const std::function<absl::Status(absl::Duration timeout)>& attempt);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_RETRY_H_
