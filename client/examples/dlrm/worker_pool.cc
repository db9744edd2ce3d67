// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/worker_pool.h"

#include <utility>

namespace cubicml::dlrm {

WorkerPool::WorkerPool(int64_t worker_count) {
  try {
    for (int64_t worker = 1; worker < worker_count; ++worker) {
      threads_.emplace_back([this, worker] { RunWorker(worker); });
    }
  } catch (...) {
    // The destructor does not run for an object that was never finished.
    Stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  job_given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::Run(const std::function<void(int64_t worker)>& job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    job_ = &job;
    ++job_number_;
    unfinished_ = static_cast<int64_t>(threads_.size()) + 1;
  }
  job_given_.notify_all();
  CallJob(0);
  std::unique_lock<std::mutex> lock(mutex_);
  job_done_.wait(lock, [this] { return unfinished_ == 0; });
  if (error_ != nullptr) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void WorkerPool::RunWorker(int64_t worker) noexcept {
  uint64_t last_job = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      job_given_.wait(lock, [this, last_job] {
        return stopping_ || job_number_ != last_job;
      });
      if (stopping_) return;
      last_job = job_number_;
    }
    CallJob(worker);
  }
}

void WorkerPool::CallJob(int64_t worker) noexcept {
  std::exception_ptr error;
  try {
    (*job_)(worker);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error != nullptr) error_ = error;
  if (--unfinished_ == 0) job_done_.notify_one();
}

}  // namespace cubicml::dlrm
