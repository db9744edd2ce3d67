// SPDX-License-Identifier: Apache-2.0

#include "base/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace cubicml {

ThreadPool::ThreadPool(absl::string_view name, size_t threads, size_t max_queue)
    : max_queue_(max_queue) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, thread_name = std::string(name)]() noexcept {
      SetThreadName(thread_name);
      Run();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mu_);
    closed_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::TrySchedule(std::function<void()> work) {
  {
    MutexLock lock(&mu_);
    if (closed_ || queue_.size() >= max_queue_) return false;
    queue_.push_back(std::move(work));
  }
  wake_.NotifyOne();
  return true;
}

size_t ThreadPool::queue_depth() const {
  MutexLock lock(&mu_);
  return queue_.size();
}

void ThreadPool::Run() {
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mu_);
      while (queue_.empty() && !closed_) wake_.Wait(&mu_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

void SetThreadName(absl::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

void SetThreadNiceness(int niceness) {
  // On Linux niceness is a property of the thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
}

}  // namespace cubicml
