// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/batch_loader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cubicml::dlrm {

Batch ReadBatch(const ClickLog& log, const DlrmOptions& options,
                ClickStream stream, int64_t first, int64_t count) {
  const ModelShape& shape = options.shape;
  const bool wide = options.index_type == IndexType::kInt64;
  const bool merged = options.table_layout == TableLayout::kMerged;
  Batch batch;
  batch.dense = at::empty({count, shape.dense_features}, at::kFloat);
  batch.labels = at::empty({count}, at::kFloat);
  batch.rows =
      at::empty({merged ? count : shape.table_count,
                 merged ? shape.table_count : count, shape.lookups_per_table},
                wide ? at::kLong : at::kInt);
  ClickColumns columns;
  columns.dense = batch.dense.data_ptr<float>();
  columns.labels = batch.labels.data_ptr<float>();
  if (wide) {
    columns.rows = batch.rows.data_ptr<int64_t>();
  } else {
    columns.rows = batch.rows.data_ptr<int32_t>();
  }
  log.Read(stream, first, count, columns);
  return batch;
}

BatchLoader::BatchLoader(const ClickLog& log, const DlrmOptions& options)
    : log_(log), options_(options) {
  if (options.loader_threads == 0) return;
  slots_.resize(static_cast<size_t>(options.prefetch_depth));
  try {
    for (int64_t i = 0; i < options.loader_threads; ++i) {
      threads_.emplace_back([this] { Run(); });
    }
  } catch (...) {
    // The destructor does not run for an object that was never finished.
    Stop();
    throw;
  }
}

BatchLoader::~BatchLoader() { Stop(); }

void BatchLoader::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  slot_freed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Batch BatchLoader::Next() {
  if (slots_.empty()) return Generate(next_out_++);
  Batch batch;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    Slot& slot = slots_[static_cast<size_t>(next_out_) % slots_.size()];
    batch_finished_.wait(
        lock, [this, &slot] { return slot.ready || error_ != nullptr; });
    if (error_ != nullptr) std::rethrow_exception(error_);
    batch = std::move(slot.batch);
    slot.ready = false;
    ++next_out_;
  }
  slot_freed_.notify_one();
  return batch;
}

int64_t BatchLoader::Waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::count_if(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.ready; });
}

Batch BatchLoader::Generate(int64_t number) const {
  const int64_t count = options_.MicroBatchSize();
  return ReadBatch(log_, options_, ClickStream::kTraining, number * count,
                   count);
}

void BatchLoader::Run() noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto slot_count = static_cast<int64_t>(slots_.size());
  while (true) {
    slot_freed_.wait(lock, [this, slot_count] {
      return stopping_ || next_in_ < next_out_ + slot_count;
    });
    if (stopping_) return;
    const int64_t number = next_in_++;
    lock.unlock();
    Batch batch;
    std::exception_ptr error;
    try {
      batch = Generate(number);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error != nullptr) {
      error_ = error;
      stopping_ = true;
      slot_freed_.notify_all();
    } else {
      Slot& slot = slots_[static_cast<size_t>(number) % slots_.size()];
      slot.batch = std::move(batch);
      slot.ready = true;
    }
    batch_finished_.notify_one();
  }
}

}  // namespace cubicml::dlrm
