// SPDX-License-Identifier: Apache-2.0
//
// What the surrogates are worth on measured tables (in the folder that the
// environment variable CUBICML_TABLES names, else in one beside the project's):
// how well they order rows that they have not seen, and how far below the best
// row a search by expected improvement stays. By these figures kinds, features
// and constants were chosen.
//
//   surrogate_bench heldout|search|speed [--kinds=linear,gp,mlp,chosen]
//                   [--tables=SUBSTRING] [--seeds=N] [--contexts=N]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/rng.h"
#include "predictor/acquisition.h"
#include "predictor/kernel_trainer.h"
#include "predictor/linear_trainer.h"
#include "predictor/quality.h"
#include "predictor/surrogate_trainer.h"
#include "predictor/torch_trainer.h"
#include "tests/bench/table.h"

namespace cubicml::bench {
namespace {

struct Options {
  std::string mode = "heldout";
  std::vector<std::string> kinds = {"linear", "gp", "mlp", "chosen"};
  std::string tables;
  int seeds = 5;
  int contexts = 2;
  int first_seed = 1;
  int trials = 50;
};

// Null: random search.
std::unique_ptr<Trainer> MakeTrainer(const std::string& kind) {
  if (kind == "linear") return NewLinearTrainer();
  if (kind == "gp") return NewKernelTrainer();
  if (kind == "mlp") return NewMlpTrainer();
  if (kind == "chosen") return NewSurrogateTrainer();
  return nullptr;
}

Dataset Subset(const Table& table, const std::vector<size_t>& rows) {
  Dataset dataset;
  dataset.metrics = {{"objective", true, table.maximize}};
  dataset.features.columns = table.features.columns;
  for (const size_t i : rows) {
    const float* row = table.features.row(i);
    dataset.features.values.insert(dataset.features.values.end(), row,
                                   row + table.features.columns);
    ++dataset.features.rows;
    dataset.rows.push_back(table.rows[i]);
  }
  return dataset;
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

struct Mean {
  double sum = 0.0;
  double count = 0.0;
  void Add(double value) {
    sum += value;
    count += 1.0;
  }
  double value() const { return count > 0.0 ? sum / count : NAN; }
};

// ---- Held-out figures ----

struct HeldOut {
  Mean tau;
  Mean coverage;
  Mean auc;
  Mean log_loss;
  Mean own_tau;  // as the model itself says
  Mean seconds;
};

void Measure(const Table& table, const Predictor& model,
             const std::vector<size_t>& rows, HeldOut* out) {
  const Dataset test = Subset(table, rows);
  const auto forecasts = model.Predict(test.features);
  if (!forecasts.ok()) return;
  std::vector<double> predicted, measured, chances;
  std::vector<int> groups;
  std::vector<bool> works;
  for (size_t i = 0; i < test.rows.size(); ++i) {
    const Forecast& f = (*forecasts)[i];
    const DatasetRow& row = test.rows[i];
    chances.push_back(f.feasible_probability);
    works.push_back(row.feasible);
    const double p = std::clamp(f.feasible_probability, 1e-6, 1 - 1e-6);
    out->log_loss.Add(-std::log(row.feasible ? p : 1 - p));
    if (!row.feasible) continue;
    const double y = row.metrics[0];
    predicted.push_back(f.score);
    measured.push_back(table.maximize ? y : -y);
    groups.push_back(row.group);
    out->coverage.Add(y >= f.metrics[0].lower90 && y <= f.metrics[0].upper90);
  }
  if (const auto tau = KendallTau(predicted, measured, groups)) {
    out->tau.Add(*tau);
  }
  if (const auto auc = AreaUnderRoc(chances, works)) out->auc.Add(*auc);
}

void RunHeldOut(const Options& options, const std::vector<Table>& parts) {
  std::map<std::pair<size_t, std::string>, HeldOut> all;
  const std::vector<size_t> sizes = {10, 20, 50, 100, 400};
  for (const Table& table : parts) {
    for (const size_t size : sizes) {
      if (table.rows.size() < size + size / 2) continue;
      for (const std::string& kind : options.kinds) {
        HeldOut result;
        for (int seed = 1; seed <= options.seeds; ++seed) {
          Rng rng(static_cast<uint64_t>(seed));
          std::vector<size_t> order(table.rows.size());
          std::iota(order.begin(), order.end(), size_t{0});
          rng.Shuffle(&order);
          const auto trainer = MakeTrainer(kind);
          const auto start = std::chrono::steady_clock::now();
          const std::vector<size_t> train(
              order.begin(), order.begin() + static_cast<ptrdiff_t>(size));
          const auto model = trainer->Train(Subset(table, train), rng, {});
          if (!model.ok()) {
            std::printf("%s: %s\n", table.name.c_str(),
                        model.status().ToString().c_str());
            continue;
          }
          result.seconds.Add(Seconds(start));
          if ((*model)->quality().has_kendall_tau()) {
            result.own_tau.Add((*model)->quality().kendall_tau());
          }
          const size_t end = std::min(order.size(), size + 2000);
          Measure(table, **model,
                  {order.begin() + static_cast<ptrdiff_t>(size),
                   order.begin() + static_cast<ptrdiff_t>(end)},
                  &result);
        }
        HeldOut& sum = all[{size, kind}];
        sum.tau.Add(result.tau.value());
        sum.coverage.Add(result.coverage.value());
        if (result.auc.count > 0) sum.auc.Add(result.auc.value());
        sum.log_loss.Add(result.log_loss.value());
        sum.seconds.Add(result.seconds.value());
        std::printf(
            "%-40s %4zu %-8s tau %.3f (own %.3f) coverage %.3f auc "
            "%.3f log loss %.3f %.0f ms\n",
            table.name.c_str(), size, kind.c_str(), result.tau.value(),
            result.own_tau.value(), result.coverage.value(), result.auc.value(),
            result.log_loss.value(), 1e3 * result.seconds.value());
        std::fflush(stdout);
      }
    }
  }
  for (const auto& [key, mean] : all) {
    std::printf(
        "MEAN %4zu %-8s tau %.3f coverage %.3f auc %.3f log loss %.3f "
        "%.0f ms\n",
        key.first, key.second.c_str(), mean.tau.value(), mean.coverage.value(),
        mean.auc.value(), mean.log_loss.value(), 1e3 * mean.seconds.value());
  }
}

// ---- Search ----

// Percent that `found` is below the best of the table.
double Regret(const Table& table, double found) {
  double best = NAN;
  for (const DatasetRow& row : table.rows) {
    if (!row.feasible) continue;
    const double y = row.metrics[0];
    if (std::isnan(best) || (table.maximize ? y > best : y < best)) best = y;
  }
  if (std::isnan(found)) return 100.0;
  return 100.0 * (1.0 - (table.maximize ? found / best : best / found));
}

size_t NextRow(const Table& table, const Predictor& model,
               const std::vector<size_t>& seen, std::vector<bool>& taken) {
  const auto forecasts = model.Score(table.features);
  double best_score = -HUGE_VAL;
  for (const size_t i : seen) {
    if (table.rows[i].feasible) {
      best_score = std::max(best_score, (*forecasts)[i].score);
    }
  }
  size_t next = 0;
  double best_value = -HUGE_VAL;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    if (taken[i]) continue;
    const Forecast& f = (*forecasts)[i];
    const double value =
        LogExpectedImprovement(f.score, f.score_stddev, best_score) +
        std::log(std::max(f.feasible_probability, 1e-3));
    if (value > best_value) {
      best_value = value;
      next = i;
    }
  }
  return next;
}

// Regret after each trial.
std::vector<double> Search(const Table& table, const Trainer* trainer,
                           uint64_t seed, int trials) {
  Rng rng(seed);
  std::vector<size_t> order(table.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  rng.Shuffle(&order);
  std::vector<bool> taken(order.size(), false);
  std::vector<size_t> seen;
  std::vector<double> regrets;
  double found = NAN;
  size_t cursor = 0;
  for (int trial = 0; trial < trials; ++trial) {
    size_t next = order.size();
    if (trial >= 10 && trainer != nullptr) {
      const auto model = trainer->Train(Subset(table, seen), rng, {});
      if (model.ok()) next = NextRow(table, **model, seen, taken);
    }
    if (next == order.size()) {
      while (cursor < order.size() && taken[order[cursor]]) ++cursor;
      if (cursor == order.size()) break;
      next = order[cursor];
    }
    taken[next] = true;
    seen.push_back(next);
    const DatasetRow& row = table.rows[next];
    if (row.feasible) {
      const double y = row.metrics[0];
      if (std::isnan(found) || (table.maximize ? y > found : y < found)) {
        found = y;
      }
    }
    regrets.push_back(Regret(table, found));
  }
  return regrets;
}

void RunSearch(const Options& options, const std::vector<Table>& parts) {
  std::map<std::string, std::vector<Mean>> all;
  const std::vector<int> marks = {10, 15, 20, 30, 50};
  for (const Table& table : parts) {
    for (const std::string& kind : options.kinds) {
      std::vector<Mean> means(marks.size());
      const auto trainer = MakeTrainer(kind);
      const auto start = std::chrono::steady_clock::now();
      for (int seed = options.first_seed;
           seed < options.first_seed + options.seeds; ++seed) {
        const std::vector<double> regrets = Search(
            table, trainer.get(), static_cast<uint64_t>(seed), options.trials);
        for (size_t k = 0; k < marks.size(); ++k) {
          const size_t at =
              std::min(regrets.size(), static_cast<size_t>(marks[k]));
          if (marks[k] <= options.trials) means[k].Add(regrets[at - 1]);
        }
      }
      std::printf("%-40s %-8s", table.name.c_str(), kind.c_str());
      all[kind].resize(marks.size());
      for (size_t k = 0; k < marks.size(); ++k) {
        all[kind][k].Add(means[k].value());
        std::printf(" %d: %.2f", marks[k], means[k].value());
      }
      std::printf("  %.1f s\n", Seconds(start));
      std::fflush(stdout);
    }
  }
  for (const auto& [kind, means] : all) {
    std::printf("MEAN %-8s", kind.c_str());
    for (size_t k = 0; k < marks.size(); ++k) {
      std::printf(" %d: %.2f", marks[k], means[k].value());
    }
    std::printf("\n");
  }
}

// ---- Speed ----

Dataset Synthetic(size_t rows, size_t columns) {
  Rng rng(1);
  Dataset dataset;
  dataset.metrics = {{"objective", true, true}};
  dataset.features.rows = rows;
  dataset.features.columns = columns;
  for (size_t i = 0; i < rows; ++i) {
    double y = 0.0;
    for (size_t c = 0; c < columns; ++c) {
      const double x = 2.0 * rng.Uniform() - 1.0;
      dataset.features.values.push_back(static_cast<float>(x));
      y += std::sin(3.0 * x) / static_cast<double>(c + 1);
    }
    DatasetRow row;
    row.feasible = y > -1.5;
    if (row.feasible) row.metrics = {std::exp(y + 0.05 * rng.Normal())};
    dataset.rows.push_back(row);
  }
  return dataset;
}

void RunSpeed(const Options& options) {
  constexpr size_t kColumns = 40;
  constexpr size_t kRows[] = {20, 100, 256, 1000, 10'000, 100'000};
  const Dataset candidates = Synthetic(100'000, kColumns);
  for (const std::string& kind : options.kinds) {
    for (const size_t rows : kRows) {
      const Dataset dataset = Synthetic(rows, kColumns);
      const auto start = std::chrono::steady_clock::now();
      const auto model = MakeTrainer(kind)->Train(dataset, Rng(1), {});
      const double train = Seconds(start);
      if (!model.ok()) continue;
      const auto scoring = std::chrono::steady_clock::now();
      (void)(*model)->Score(candidates.features);
      const double score = Seconds(scoring);
      FeatureMatrix one = candidates.features;
      one.rows = 1;
      one.values.resize(kColumns);
      const auto single = std::chrono::steady_clock::now();
      for (int i = 0; i < 1000; ++i) (void)(*model)->Score(one);
      std::printf(
          "%-8s %7zu rows: train %.3f s, score 100,000 in %.3f s, one "
          "row %.1f us, checkpoint %zu bytes (%s)\n",
          kind.c_str(), rows, train, score, 1e3 * Seconds(single),
          (*model)->Serialize().size(),
          std::string((*model)->kind().data(), (*model)->kind().size())
              .c_str());
      std::fflush(stdout);
    }
  }
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view arg = argv[i];
    const auto value = [&](absl::string_view name) {
      return std::string(arg.substr(name.size()));
    };
    if (absl::StartsWith(arg, "--kinds=")) {
      options.kinds = absl::StrSplit(value("--kinds="), ',');
    } else if (absl::StartsWith(arg, "--tables=")) {
      options.tables = value("--tables=");
    } else if (absl::StartsWith(arg, "--seeds=")) {
      (void)absl::SimpleAtoi(value("--seeds="), &options.seeds);
    } else if (absl::StartsWith(arg, "--contexts=")) {
      (void)absl::SimpleAtoi(value("--contexts="), &options.contexts);
    } else if (absl::StartsWith(arg, "--first_seed=")) {
      (void)absl::SimpleAtoi(value("--first_seed="), &options.first_seed);
    } else if (absl::StartsWith(arg, "--trials=")) {
      (void)absl::SimpleAtoi(value("--trials="), &options.trials);
    } else {
      options.mode = std::string(arg);
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  if (options.mode == "speed") {
    RunSpeed(options);
    return 0;
  }
  const char* folder = std::getenv("CUBICML_TABLES");
  if (folder == nullptr) folder = CUBICML_DEFAULT_TABLES;
  const auto tables = LoadTables(folder, options.tables);
  if (!tables.ok()) {
    std::printf("skipped: %s\n", tables.status().ToString().c_str());
    return 0;
  }
  std::vector<Table> parts;
  for (const Table& table : *tables) {
    for (Table& part :
         SplitContexts(table, 30, static_cast<size_t>(options.contexts))) {
      parts.push_back(std::move(part));
    }
  }
  if (options.mode == "search") {
    RunSearch(options, parts);
  } else if (options.mode == "pooled") {
    // All contexts of a table at once: what they teach each other.
    RunHeldOut(options, *tables);
  } else {
    RunHeldOut(options, parts);
  }
  return 0;
}

}  // namespace
}  // namespace cubicml::bench

int main(int argc, char** argv) { return cubicml::bench::Main(argc, argv); }
