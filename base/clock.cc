// SPDX-License-Identifier: Apache-2.0

#include "base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace cubicml {

absl::Time SystemClock::Now() const { return absl::Now(); }

absl::Duration SystemClock::Elapsed() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace cubicml
