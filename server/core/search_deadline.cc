// SPDX-License-Identifier: Apache-2.0

#include "server/core/search_deadline.h"

namespace cubicml {

SearchDeadline::SearchDeadline(absl::Duration timeout)
    : thread_([this, timeout] { Run(timeout); }) {}

SearchDeadline::~SearchDeadline() {
  {
    MutexLock lock(&mu_);
    done_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void SearchDeadline::Run(absl::Duration timeout) {
  MutexLock lock(&mu_);
  while (!done_) {
    if (!wake_.WaitFor(&mu_, timeout)) break;
  }
  if (!done_) stop_.request_stop();
}

}  // namespace cubicml
