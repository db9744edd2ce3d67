// SPDX-License-Identifier: Apache-2.0
//
// The measurements of a study, in memory: append-only, and shared without
// copying with the threads that train and search while more arrive.

#ifndef CUBICML_SERVER_CORE_ROW_LOG_H_
#define CUBICML_SERVER_CORE_ROW_LOG_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "predictor/search_space.h"

namespace cubicml {

// A trial that says something about its configuration.
struct MeasuredRow {
  TrialNumber number;
  int group = 0;  // its context
  Point point;
  std::string key;  // SearchSpace::PointKey
  bool feasible = false;
  // It was measured to its end, though it may violate a metric constraint.
  bool ran = false;
  std::vector<double> metrics;  // in the order of the study, NaN if missing
  std::vector<float> features;
};

// Not thread-safe, but what a Snapshot shows never changes.
class RowLog {
  static constexpr size_t kBlockRows = 256;
  using Block = std::array<MeasuredRow, kBlockRows>;

 public:
  // The rows at one moment. Cheap to make; may be read by any thread.
  class Snapshot {
   public:
    size_t size() const { return size_; }
    const MeasuredRow& operator[](size_t i) const {
      return (*blocks_[i / kBlockRows])[i % kBlockRows];
    }

   private:
    friend class RowLog;
    std::vector<std::shared_ptr<const Block>> blocks_;
    size_t size_ = 0;
  };

  size_t size() const { return size_; }

  void Append(MeasuredRow row) {
    if (size_ % kBlockRows == 0) blocks_.push_back(std::make_shared<Block>());
    // Snapshots never look at a row beyond their size.
    (*blocks_.back())[size_ % kBlockRows] = std::move(row);
    ++size_;
  }

  Snapshot Share() const {
    Snapshot snapshot;
    snapshot.blocks_.assign(blocks_.begin(), blocks_.end());
    snapshot.size_ = size_;
    return snapshot;
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
  size_t size_ = 0;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_ROW_LOG_H_
