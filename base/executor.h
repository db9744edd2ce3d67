// SPDX-License-Identifier: Apache-2.0
//
// Runs work somewhere: on a bounded pool in the server, at once in tests.

#ifndef CUBICML_BASE_EXECUTOR_H_
#define CUBICML_BASE_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace cubicml {

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;

  // Takes the work, or returns false at once when the queue is full or closed.
  // The work must not throw.
  virtual bool TrySchedule(std::function<void()> work) = 0;
};

// Runs the work before TrySchedule returns.
class InlineExecutor final : public Executor {
 public:
  bool TrySchedule(std::function<void()> work) override {
    work();
    return true;
  }
};

class ThreadPool final : public Executor {
 public:
  // `name` (at most 15 bytes) is what the threads are called in top(1).
  ThreadPool(absl::string_view name, size_t threads, size_t max_queue);
  // Finishes what is queued.
  ~ThreadPool() override;

  bool TrySchedule(std::function<void()> work) override;

  // Work that waits for a thread.
  size_t queue_depth() const;

 private:
  void Run();

  const size_t max_queue_;
  mutable Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // last: they use the members above
};

// Gives the calling thread a name in top(1), at most 15 bytes.
void SetThreadName(absl::string_view name);

// Lowers the calling thread's share of the processor, from 0 to 19; for good.
// Best effort.
void SetThreadNiceness(int niceness);

}  // namespace cubicml

#endif  // CUBICML_BASE_EXECUTOR_H_
