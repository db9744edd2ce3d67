// SPDX-License-Identifier: Apache-2.0

#include "server/core/search_deadline.h"

#include "base/executor.h"

namespace cubicml {

SearchTimer::SearchTimer(const Clock* clock)
    : clock_(clock), thread_([this] { Run(); }) {}

SearchTimer::~SearchTimer() {
  {
    MutexLock lock(&mu_);
    done_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

SearchTimer::Key SearchTimer::Add(absl::Duration moment,
                                  const std::stop_source& stop) {
  MutexLock lock(&mu_);
  const auto it = deadlines_.emplace(Key{moment, ++added_}, stop).first;
  // The thread sleeps until the first of them.
  if (it == deadlines_.begin()) wake_.NotifyAll();
  return it->first;
}

void SearchTimer::Remove(const Key& key) {
  MutexLock lock(&mu_);
  deadlines_.erase(key);
}

void SearchTimer::Run() {
  SetThreadName("search-timer");
  MutexLock lock(&mu_);
  while (!done_) {
    if (deadlines_.empty()) {
      wake_.Wait(&mu_);
      continue;
    }
    const auto first = deadlines_.begin();
    const absl::Duration left = first->first.first - clock_->Elapsed();
    if (left > absl::ZeroDuration()) {
      wake_.WaitFor(&mu_, left);
      continue;
    }
    // Searches only ask their tokens: nothing runs in here under the lock.
    first->second.request_stop();
    deadlines_.erase(first);
  }
}

}  // namespace cubicml
