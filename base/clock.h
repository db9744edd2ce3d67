// SPDX-License-Identifier: Apache-2.0
//
// The only place that reads the time, so that tests own it.

#ifndef CUBICML_BASE_CLOCK_H_
#define CUBICML_BASE_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace cubicml {

// Years 1 to 9999, all that a google.protobuf.Timestamp may hold.
inline constexpr int64_t kMinTimestampSeconds = -62'135'596'800;
inline constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall-clock time, for what is stored. May jump.
  virtual absl::Time Now() const = 0;

  // Time since some fixed moment, never goes back; for leases and durations.
  virtual absl::Duration Elapsed() const = 0;
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Elapsed() const override;
};

}  // namespace cubicml

#endif  // CUBICML_BASE_CLOCK_H_
