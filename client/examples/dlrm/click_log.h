// SPDX-License-Identifier: Apache-2.0
//
// A synthetic click log: an endless sequence of samples whose categories are
// skewed as those of real logs are, and whose labels a hidden teacher draws
// from the features, so that a model can learn them.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_CLICK_LOG_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_CLICK_LOG_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

// Training and held-out samples have nothing in common but the teacher.
enum class ClickStream : uint64_t { kTraining = 1, kHeldOut = 2 };

// Where the samples go; the caller owns the memory.
struct ClickColumns {
  float* dense = nullptr;   // [sample][feature]
  float* labels = nullptr;  // [sample], 0 or 1
  // kSeparate: [table][sample][lookup], rows counted within the table.
  // kMerged: [sample][table][lookup], rows counted over all tables.
  std::variant<int64_t*, int32_t*> rows;
};

// A sample depends on the seed and on its number alone: the same samples come
// in the same order whatever the batch size or the number of loader threads.
// Immutable, so any number of threads may share one.
class ClickLog {
 public:
  ClickLog(const ModelShape& shape, TableLayout layout);

  // Writes samples `first` to `first + count - 1`.
  void Read(ClickStream stream, int64_t first, int64_t count,
            const ClickColumns& out) const;

 private:
  struct Table {
    uint64_t key = 0;
    uint64_t rows = 0;
    int64_t first_row = 0;  // 0 unless merged
    double zipf_scale = 0.0;
  };

  template <typename Index>
  void ReadRows(ClickStream stream, int64_t first, int64_t count,
                const ClickColumns& out, Index* rows) const;

  const ModelShape shape_;
  const TableLayout layout_;
  std::vector<Table> tables_;
  std::vector<float> dense_weights_;
};

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_CLICK_LOG_H_
