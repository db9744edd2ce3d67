// SPDX-License-Identifier: Apache-2.0
//
// Waits for another process to get somewhere, where it cannot tell us.

#ifndef CUBICML_TESTS_SUPPORT_WAIT_UNTIL_H_
#define CUBICML_TESTS_SUPPORT_WAIT_UNTIL_H_

#include <poll.h>

#include <functional>

#include "absl/time/time.h"
#include "base/clock.h"

namespace cubicml {

// Asks again and again; false when `timeout` passed first.
inline bool WaitUntil(absl::Duration timeout,
                      const std::function<bool()>& condition) {
  const SystemClock clock;
  const absl::Duration end = clock.Elapsed() + timeout;
  while (!condition()) {
    if (clock.Elapsed() > end) return false;
    poll(nullptr, 0, 20);  // leaves the processor to the other process
  }
  return true;
}

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_WAIT_UNTIL_H_
