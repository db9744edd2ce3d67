// SPDX-License-Identifier: Apache-2.0
//
// Time that stands still until the test moves it.

#ifndef CUBICML_TESTS_SUPPORT_FAKE_CLOCK_H_
#define CUBICML_TESTS_SUPPORT_FAKE_CLOCK_H_

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace cubicml {

// Thread-safe.
class FakeClock final : public Clock {
 public:
  // Now() starts at `now`, Elapsed() at an hour.
  explicit FakeClock(absl::Time now = absl::FromUnixSeconds(1'700'000'000))
      : now_(now) {}

  absl::Time Now() const override {
    MutexLock lock(&mu_);
    return now_;
  }
  absl::Duration Elapsed() const override {
    MutexLock lock(&mu_);
    return elapsed_;
  }

  // Time passes.
  void Advance(absl::Duration duration) {
    MutexLock lock(&mu_);
    now_ += duration;
    elapsed_ += duration;
  }
  // The wall clock jumps, as when an operator or NTP sets it.
  void SetNow(absl::Time now) {
    MutexLock lock(&mu_);
    now_ = now;
  }

 private:
  mutable Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_);
  absl::Duration elapsed_ ABSL_GUARDED_BY(mu_) = absl::Hours(1);
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_FAKE_CLOCK_H_
