// SPDX-License-Identifier: Apache-2.0
//
// Stops a search when its time is over, so that a call can still answer.

#ifndef CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_
#define CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_

#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace cubicml {

// Requests a stop `timeout` after its construction, unless it is destroyed
// before. A thread of its own that sleeps: searches that run inside a call are
// rare and take milliseconds, a thread takes microseconds.
class SearchDeadline {
 public:
  explicit SearchDeadline(absl::Duration timeout);
  ~SearchDeadline();
  SearchDeadline(const SearchDeadline&) = delete;
  SearchDeadline& operator=(const SearchDeadline&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Run(absl::Duration timeout);

  std::stop_source stop_;
  Mutex mu_;
  CondVar wake_;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_SEARCH_DEADLINE_H_
