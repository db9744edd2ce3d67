// SPDX-License-Identifier: Apache-2.0
//
// What `dlrm_train` can be told: the shape of the model, which is the context
// of a study, and the knobs, which change how fast it trains and not what it
// computes (batch_size, accumulation and lr aside; README.md says which).
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_OPTIONS_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cubicml::dlrm {

// What a process that ends in each way exits with.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitBadFlags = 2;
inline constexpr int kExitOutOfMemory = 12;  // ENOMEM
inline constexpr int kExitTerminated = 143;  // 128 + SIGTERM, as a shell says

enum class EmbeddingGradient { kDense, kSparse };
enum class EmbeddingLookup { kBag, kGather };
enum class TableLayout { kSeparate, kMerged };
enum class Interaction { kBmm, kLoop, kFused };
enum class Optimizer { kSgd, kAdagrad };
enum class UpdateLoop { kTorch, kFused };
enum class IndexType { kInt64, kInt32 };
enum class ZeroGrad { kZero, kNone };

// The model and its data. Two runs with the same shape see the same samples in
// the same order, whatever their knobs are.
struct ModelShape {
  int64_t table_count = 8;
  // Rows of the first table; each further one has half as many, because the
  // categories of real click logs range from millions to a handful.
  int64_t rows_per_table = 100'000;
  int64_t lookups_per_table = 4;
  int64_t embedding_dim = 32;
  int64_t dense_features = 13;
  uint64_t seed = 1;

  int64_t TableRows(int64_t table) const;
  int64_t TotalRows() const;
};

struct DlrmOptions {
  ModelShape shape;

  int64_t batch_size = 256;
  int64_t accumulation = 1;
  int64_t worker_threads = 1;
  int64_t intra_op_threads = 0;  // 0: what LibTorch chooses
  int64_t loader_threads = 1;    // 0: the training thread generates its input
  int64_t prefetch_depth = 2;
  // One per table; a single value on the command line stands for all of them.
  std::vector<EmbeddingGradient> embedding_gradient;
  EmbeddingLookup embedding_lookup = EmbeddingLookup::kBag;
  TableLayout table_layout = TableLayout::kSeparate;
  Interaction interaction = Interaction::kBmm;
  Optimizer optimizer = Optimizer::kSgd;
  UpdateLoop update_loop = UpdateLoop::kTorch;
  IndexType index_type = IndexType::kInt64;
  ZeroGrad zero_grad = ZeroGrad::kZero;
  double lr = 0.1;
  int64_t malloc_threshold_mib = 0;  // 0: leave glibc's thresholds alone
  bool huge_pages = false;

  int64_t memory_limit_mib = 0;  // 0: none
  int64_t loss_samples = 65'536;
  int64_t eval_samples = 8'192;
  int64_t warmup_steps = 10;
  double seconds = 4.0;
  int64_t steps = 0;  // 0: the window ends by time alone
  std::string metrics_file;

  // Not empty when --help was given: what to print before exiting with 0.
  std::string help;

  // Samples that one forward and backward pass takes.
  int64_t MicroBatchSize() const { return batch_size / accumulation; }
};

// Reads `--name=value` arguments (without the program's name).
// INVALID_ARGUMENT: an unknown flag, a value out of its bounds, or flags that
// contradict each other; the message names the flag and the bound.
absl::StatusOr<DlrmOptions> ParseDlrmOptions(
    const std::vector<std::string>& args);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_OPTIONS_H_
