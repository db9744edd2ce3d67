// SPDX-License-Identifier: Apache-2.0
//
// A fixed team of threads that carries out one job at a time together.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_WORKER_POOL_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_WORKER_POOL_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cubicml::dlrm {

// The calling thread is worker 0, so a pool of one has no threads. Run() is
// for one thread.
class WorkerPool {
 public:
  explicit WorkerPool(int64_t worker_count);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls job(0) to job(worker_count - 1) at once and waits for all of them.
  // Then throws what one of them threw, if any did.
  void Run(const std::function<void(int64_t worker)>& job);

 private:
  void RunWorker(int64_t worker) noexcept;
  void CallJob(int64_t worker) noexcept;
  void Stop();

  std::mutex mutex_;
  std::condition_variable job_given_;
  std::condition_variable job_done_;
  // Guarded by mutex_.
  const std::function<void(int64_t)>* job_ = nullptr;
  uint64_t job_number_ = 0;
  int64_t unfinished_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;

  std::vector<std::thread> threads_;
};

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_WORKER_POOL_H_
