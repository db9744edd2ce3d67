// SPDX-License-Identifier: Apache-2.0
//
// Batches of the click log as tensors, generated ahead by threads into a
// bounded queue.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_BATCH_LOADER_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_BATCH_LOADER_H_

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "client/examples/dlrm/click_log.h"
#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

struct Batch {
  at::Tensor dense;   // float [samples, features]
  at::Tensor rows;    // int32 or int64; separate: [tables, samples, lookups],
                      // merged: [samples, tables, lookups]
  at::Tensor labels;  // float [samples]
};

// Reads `count` samples of the log, from number `first` on.
Batch ReadBatch(const ClickLog& log, const DlrmOptions& options,
                ClickStream stream, int64_t first, int64_t count);

// Hands out the micro-batches of the training stream in order. Which thread
// generates which one changes nothing but the speed. Next() and Waiting() are
// for one thread, the one that trains.
class BatchLoader {
 public:
  BatchLoader(const ClickLog& log, const DlrmOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Waits for the next micro-batch. Throws what its generation threw, such as
  // an allocation that failed, and then must not be called again.
  Batch Next();

  // Micro-batches that are finished and not handed out.
  int64_t Waiting() const;

 private:
  struct Slot {
    Batch batch;
    bool ready = false;
  };

  Batch Generate(int64_t number) const;
  void Run() noexcept;
  void Stop();

  const ClickLog& log_;
  const DlrmOptions& options_;

  mutable std::mutex mutex_;
  std::condition_variable slot_freed_;
  std::condition_variable batch_finished_;
  // Guarded by mutex_. Micro-batch n goes through slot n % slots_.size();
  // those from next_out_ on and below next_in_ are in work or waiting.
  std::vector<Slot> slots_;
  int64_t next_in_ = 0;
  int64_t next_out_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;

  std::vector<std::thread> threads_;
};

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_BATCH_LOADER_H_
