// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/dlrm_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cubicml::dlrm {
namespace {

// The smallest table still needs a few rows, or every bag would be the same.
constexpr int64_t kMinTableRows = 16;
// Keeps row numbers of the merged table within int32.
constexpr int64_t kMaxRowsPerTable = 500'000'000;

// Adds a flag that takes one of `names`, and hands the index of the one given
// to `set`.
void AddChoice(CLI::App& app, const std::string& flag,
               const std::vector<std::string>& names, const std::string& help,
               const std::function<void(size_t)>& set) {
  app.add_option_function<std::string>(
         flag,
         [names, set](const std::string& value) {
           const auto it = std::find(names.begin(), names.end(), value);
           set(static_cast<size_t>(it - names.begin()));
         },
         help)
      ->check(CLI::IsMember(names));
}

void AddShapeFlags(CLI::App& app, ModelShape& shape) {
  app.add_option("--table_count", shape.table_count, "Embedding tables")
      ->check(CLI::Range(1, 64));
  app.add_option("--rows_per_table", shape.rows_per_table,
                 "Rows of the first table; each next one has half as many")
      ->check(CLI::Range(kMinTableRows, kMaxRowsPerTable));
  app.add_option("--lookups_per_table", shape.lookups_per_table,
                 "Categories per sample and table, summed into one vector")
      ->check(CLI::Range(1, 256));
  app.add_option("--embedding_dim", shape.embedding_dim,
                 "Length of an embedding vector")
      ->check(CLI::Range(1, 1024));
  app.add_option("--dense_features", shape.dense_features,
                 "Dense input features")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", shape.seed,
                 "Seed of the data and of the initial weights");
}

void AddCountKnobs(CLI::App& app, DlrmOptions& options) {
  app.add_option("--batch_size", options.batch_size,
                 "Samples per optimizer step")
      ->check(CLI::Range(1, 1'048'576));
  app.add_option("--accumulation", options.accumulation,
                 "Micro-batches that one step adds the gradients of")
      ->check(CLI::Range(1, 4096));
  app.add_option("--worker_threads", options.worker_threads,
                 "Threads that work on the micro-batches of a step at once")
      ->check(CLI::Range(1, 64));
  app.add_option("--intra_op_threads", options.intra_op_threads,
                 "LibTorch's threads within one operator; 0: its default")
      ->check(CLI::Range(0, 256));
  app.add_option("--loader_threads", options.loader_threads,
                 "Threads that generate batches ahead; 0: none")
      ->check(CLI::Range(0, 64));
  app.add_option("--prefetch_depth", options.prefetch_depth,
                 "Micro-batches that wait in the queue at most")
      ->check(CLI::Range(1, 1024));
  app.add_option("--lr", options.lr, "Learning rate")
      ->check(CLI::Range(1e-6, 10.0));
  app.add_option("--malloc_threshold_mib", options.malloc_threshold_mib,
                 "Blocks below this stay in the heap; 0: glibc's default")
      ->check(CLI::Range(0, 4096));
  app.add_option("--huge_pages", options.huge_pages,
                 "Ask for huge pages for the embedding tables")
      ->check(CLI::IsMember({"true", "false"}));
}

void AddChoiceKnobs(CLI::App& app, DlrmOptions& options,
                    std::vector<std::string>& embedding_gradient) {
  app.add_option("--embedding_gradient", embedding_gradient,
                 "Gradients of the tables: one for all, or one for each, "
                 "separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"dense", "sparse"}));
  AddChoice(app, "--embedding_lookup", {"bag", "gather"},
            "A fused lookup and sum, or a gather followed by a sum",
            [&options](size_t i) {
              options.embedding_lookup = static_cast<EmbeddingLookup>(i);
            });
  AddChoice(app, "--table_layout", {"separate", "merged"},
            "One tensor for each table, or one for all", [&options](size_t i) {
              options.table_layout = static_cast<TableLayout>(i);
            });
  AddChoice(app, "--interaction", {"bmm", "loop", "fused"},
            "How the pairwise dot products are computed", [&options](size_t i) {
              options.interaction = static_cast<Interaction>(i);
            });
  AddChoice(
      app, "--optimizer", {"sgd", "adagrad"}, "The optimizer",
      [&options](size_t i) { options.optimizer = static_cast<Optimizer>(i); });
  AddChoice(app, "--update_loop", {"torch", "fused"},
            "LibTorch's optimizer, or one pass over each parameter",
            [&options](size_t i) {
              options.update_loop = static_cast<UpdateLoop>(i);
            });
  AddChoice(
      app, "--index_type", {"int64", "int32"}, "Type of the category numbers",
      [&options](size_t i) { options.index_type = static_cast<IndexType>(i); });
  AddChoice(
      app, "--zero_grad", {"zero", "none"},
      "Between steps, fill gradients with zeros or drop them",
      [&options](size_t i) { options.zero_grad = static_cast<ZeroGrad>(i); });
}

void AddRunFlags(CLI::App& app, DlrmOptions& options) {
  app.add_option(
         "--memory_limit_mib", options.memory_limit_mib,
         "Private memory that training may take on top of what the loaded "
         "libraries hold at the start; 0: no limit")
      ->check(CLI::Range(0, 16'777'216));
  app.add_option("--loss_samples", options.loss_samples,
                 "Samples to train before the loss is measured; 0: no loss")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--eval_samples", options.eval_samples,
                 "Held-out samples that the loss is measured on")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--warmup_steps", options.warmup_steps,
                 "Steps between the measurement of the loss and that of qps")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--seconds", options.seconds,
                 "Length of the window that qps is measured over")
      ->check(CLI::Range(0.0, 86'400.0));
  app.add_option("--steps", options.steps,
                 "Steps that end the window early; 0: time alone ends it")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--metrics_file", options.metrics_file,
                 "Also write the metrics here, as a JSON object");
}

// What single flags cannot be checked for. Returns OK or INVALID_ARGUMENT.
absl::Status CheckTogether(const DlrmOptions& options, size_t gradients_given) {
  if (options.batch_size % options.accumulation != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--batch_size: ", options.batch_size,
        " is not a multiple of --accumulation=", options.accumulation));
  }
  if (options.worker_threads > options.accumulation) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--worker_threads: ", options.worker_threads,
        " is more than the micro-batches of a step, --accumulation=",
        options.accumulation));
  }
  const auto table_count = static_cast<size_t>(options.shape.table_count);
  if (gradients_given > 1 && gradients_given != table_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--embedding_gradient: ", gradients_given,
                     " values; give 1, or --table_count=", table_count));
  }
  const auto& gradients = options.embedding_gradient;
  if (options.table_layout == TableLayout::kMerged &&
      std::count(gradients.begin(), gradients.end(), gradients.front()) !=
          static_cast<std::ptrdiff_t>(gradients.size())) {
    return absl::InvalidArgumentError(
        "--embedding_gradient: --table_layout=merged is one tensor, so it "
        "takes one value");
  }
  // A range lets NaN through, which is neither above nor below its bounds.
  if (std::isnan(options.lr) || std::isnan(options.seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::isnan(options.lr) ? "--lr" : "--seconds", ": not a number"));
  }
  if (options.seconds <= 0.0 && options.steps == 0) {
    return absl::InvalidArgumentError(
        "--seconds: 0 needs --steps of at least 1, or the window never ends");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ModelShape::TableRows(int64_t table) const {
  return std::max(kMinTableRows,
                  rows_per_table >> std::min(table, int64_t{62}));
}

int64_t ModelShape::TotalRows() const {
  int64_t total = 0;
  for (int64_t table = 0; table < table_count; ++table) {
    total += TableRows(table);
  }
  return total;
}

absl::StatusOr<DlrmOptions> ParseDlrmOptions(
    const std::vector<std::string>& args) {
  DlrmOptions options;
  std::vector<std::string> gradients = {"dense"};
  CLI::App app("Trains a DLRM on synthetic clicks and measures its speed.",
               "dlrm_train");
  app.option_defaults()->always_capture_default();
  AddShapeFlags(app, options.shape);
  AddCountKnobs(app, options);
  AddChoiceKnobs(app, options, gradients);
  AddRunFlags(app, options);
  try {
    // CLI11 takes arguments from the back.
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  for (int64_t table = 0; table < options.shape.table_count; ++table) {
    const size_t i = gradients.size() == 1 ? 0 : static_cast<size_t>(table);
    const bool sparse = i < gradients.size() && gradients[i] == "sparse";
    options.embedding_gradient.push_back(sparse ? EmbeddingGradient::kSparse
                                                : EmbeddingGradient::kDense);
  }
  if (absl::Status status = CheckTogether(options, gradients.size());
      !status.ok()) {
    return status;
  }
  return options;
}

}  // namespace cubicml::dlrm
