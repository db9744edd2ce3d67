// SPDX-License-Identifier: Apache-2.0
//
// How a TuningClient reaches its server and how long it tries.

#ifndef CUBICML_CLIENT_TUNING_CLIENT_OPTIONS_H_
#define CUBICML_CLIENT_TUNING_CLIENT_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace cubicml {

// The wait before attempt n + 1 is initial_backoff * backoff_multiplier^(n-1),
// at most max_backoff, plus or minus the share `jitter` of itself at random.
struct RetryOptions {
  int max_attempts = 5;
  absl::Duration initial_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(5);
  double backoff_multiplier = 2.0;
  double jitter = 0.25;
};

struct TuningClientOptions {
  // host:port, or any target that gRPC understands (dns:///..., unix:...).
  std::string server = "127.0.0.1:7264";
  // For a call that names no timeout, all its attempts together.
  absl::Duration timeout = absl::Seconds(30);
  // For one attempt of a call other than StartTrial() and the streams.
  absl::Duration attempt_timeout = absl::Seconds(10);
  // While the server cannot be reached, go on trying until the timeout instead
  // of for retry.max_attempts.
  bool wait_for_ready = false;
  RetryOptions retry = {};
  // During a call, a ping is sent after this long without traffic, so that a
  // server that vanished is noticed.
  absl::Duration keepalive_time = absl::Seconds(20);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  // A TrialHandle that is dropped tries this long to report ABANDONED.
  absl::Duration abandon_timeout = absl::Seconds(5);
  // Larger answers are refused.
  int max_message_bytes = 64 << 20;
};

struct CallOptions {
  // For all attempts together. Zero: the client's.
  absl::Duration timeout = absl::ZeroDuration();
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_TUNING_CLIENT_OPTIONS_H_
