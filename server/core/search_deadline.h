// SPDX-License-Identifier: Apache-2.0
//
// Stops a search when its time is over, so that a call can still answer.

#ifndef CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_
#define CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_

#include <cstdint>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace cubicml {

// The thread that watches all deadlines of a service. One for all: a thread for
// each search could not be had just when the machine is at its limit.
// Thread-safe. Must outlive its deadlines.
class SearchTimer {
 public:
  explicit SearchTimer(const Clock* clock);
  ~SearchTimer();
  SearchTimer(const SearchTimer&) = delete;
  SearchTimer& operator=(const SearchTimer&) = delete;

 private:
  friend class SearchDeadline;
  // When, on Clock::Elapsed, and a number that makes it unique.
  using Key = std::pair<absl::Duration, uint64_t>;

  Key Add(absl::Duration moment, const std::stop_source& stop);
  void Remove(const Key& key);
  void Run();

  const Clock* const clock_;
  Mutex mu_;
  CondVar wake_;
  std::map<Key, std::stop_source> deadlines_ ABSL_GUARDED_BY(mu_);
  uint64_t added_ ABSL_GUARDED_BY(mu_) = 0;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the members above
};

// Requests a stop at `moment`, unless it is destroyed before.
class SearchDeadline {
 public:
  SearchDeadline(SearchTimer* timer, absl::Duration moment)
      : timer_(timer), key_(timer->Add(moment, stop_)) {}
  ~SearchDeadline() { timer_->Remove(key_); }
  SearchDeadline(const SearchDeadline&) = delete;
  SearchDeadline& operator=(const SearchDeadline&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  SearchTimer* const timer_;
  std::stop_source stop_;
  const SearchTimer::Key key_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_
