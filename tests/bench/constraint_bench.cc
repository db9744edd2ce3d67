// SPDX-License-Identifier: Apache-2.0
//
// What a search is worth where metrics have bounds, on synthetic jobs: percent
// below the best configuration that keeps them after 10, 20 and 40 trials, the
// share of trials that broke one, and how true the model's chances were.
//
//   constraint_bench [--kinds=smooth,tight] [--first-seed=N] [--seeds=N]
//                    [--trials=N] [--jobs=N] [--dense] [--trace]
//
// And what it takes to train the models of such a job:
//
//   constraint_bench --training

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/log.h"
#include "base/rng.h"
#include "predictor/dataset.h"
#include "predictor/kernel_trainer.h"
#include "predictor/searcher.h"
#include "predictor/trainer.h"
#include "tests/predictor/constrained_problem.h"

namespace cubicml::bench {
namespace {

struct Options {
  std::vector<std::string> kinds;  // empty: all
  int first_seed = 1;
  int seeds = 10;
  int trials = 40;
  int jobs = 1;
  bool dense = false;
  bool trace = false;
  bool training = false;
};

constexpr int kMarks[] = {10, 20, 40};

struct Sums {
  double regret[std::size(kMarks)] = {};
  double broke = 0.0;     // share of all trials
  double wasted = 0.0;    // share of those that a model proposed
  double log_loss = 0.0;  // of the chances of those
  double covered = 0.0;   // by 90 % intervals of bounded metrics
  double modelled = 0.0;
  double intervals = 0.0;
};

void Trace(const ConstrainedProblem& problem, const ConstrainedTrial& trial) {
  std::printf("  %s %s regret %6.2f chance %.2g", trial.modelled ? "M" : "-",
              trial.kept ? "kept " : "BROKE", trial.regret, trial.chance);
  for (const MetricBound& bound : problem.bounds) {
    std::printf(" | %s %.5g of %.5g",
                problem.metrics[bound.metric].name.c_str(),
                trial.measured[bound.metric], bound.max);
    if (!trial.modelled) continue;
    const MetricForecast& f = trial.forecasts[bound.metric];
    std::printf(" by [%.5g %.5g %.5g]", f.lower90, f.mean, f.upper90);
  }
  for (const double value : trial.point) std::printf(" %g", value);
  std::printf("\n");
}

void Add(const ConstrainedProblem& problem,
         const std::vector<ConstrainedTrial>& trials, Sums* sums) {
  for (size_t m = 0; m < std::size(kMarks); ++m) {
    const size_t at = std::min(static_cast<size_t>(kMarks[m]), trials.size());
    sums->regret[m] += trials[at - 1].regret;
  }
  const double count = static_cast<double>(trials.size());
  for (const ConstrainedTrial& trial : trials) {
    sums->broke += (trial.kept ? 0.0 : 1.0) / count;
    if (!trial.modelled) continue;
    sums->modelled += 1.0;
    sums->wasted += trial.kept ? 0.0 : 1.0;
    const double p = std::clamp(trial.chance, 1e-4, 1.0 - 1e-4);
    sums->log_loss -= std::log(trial.kept ? p : 1.0 - p);
    for (const MetricBound& bound : problem.bounds) {
      const MetricForecast& f = trial.forecasts[bound.metric];
      const double value = trial.measured[bound.metric];
      sums->intervals += 1.0;
      sums->covered += value >= f.lower90 && value <= f.upper90 ? 1.0 : 0.0;
    }
  }
}

void Print(const char* kind, const char* searcher, double feasible,
           const Sums& sums, double runs) {
  std::printf("| %s | %.2f | %s |", kind, feasible, searcher);
  for (const double regret : sums.regret) std::printf(" %.2f |", regret / runs);
  std::printf(" %.2f |", sums.broke / runs);
  if (sums.modelled > 0.0) {
    std::printf(" %.2f | %.2f | %.2f |\n", sums.wasted / sums.modelled,
                sums.log_loss / sums.modelled, sums.covered / sums.intervals);
  } else {
    std::printf(" | | |\n");
  }
  std::fflush(stdout);
}

void Run(const Options& options) {
  const std::unique_ptr<Trainer> trainer =
      options.dense ? NewDenseTrainer() : NewKernelTrainer();
  const std::unique_ptr<Searcher> searcher = NewDefaultSearcher();
  std::printf(
      "| bound | share that keeps it | searcher | below best@10 | @20 | @40 | "
      "broke | of the model's | log loss | coverage90 |\n"
      "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const ConstraintKind kind : kConstraintKinds) {
    if (!options.kinds.empty() &&
        std::find(options.kinds.begin(), options.kinds.end(), NameOf(kind)) ==
            options.kinds.end()) {
      continue;
    }
    Sums of_default;
    Sums of_random;
    double feasible = 0.0;
    for (int seed = options.first_seed;
         seed < options.first_seed + options.seeds; ++seed) {
      const auto s = static_cast<uint64_t>(seed);
      const ConstrainedProblem problem = MakeConstrainedProblem(kind, s);
      feasible += problem.feasible_share / options.seeds;
      const std::vector<ConstrainedTrial> trials = SearchConstrained(
          problem, trainer.get(), *searcher, s, options.trials, options.jobs);
      if (options.trace) {
        std::printf("%s, seed %d:\n", NameOf(kind), seed);
        for (const ConstrainedTrial& trial : trials) Trace(problem, trial);
      }
      Add(problem, trials, &of_default);
      // Random search is cheap and its luck is large.
      constexpr uint64_t kDraws = 10;
      for (uint64_t draw = 0; draw < kDraws; ++draw) {
        Add(problem,
            SearchConstrained(problem, nullptr, *searcher, s * kDraws + draw,
                              options.trials),
            &of_random);
      }
    }
    Print(NameOf(kind), options.dense ? "dense" : "default", feasible,
          of_default, options.seeds);
    Print(NameOf(kind), "random", feasible, of_random, 10.0 * options.seeds);
  }
}

// Rows of configurations drawn at random.
Dataset MakeRows(const ConstrainedProblem& problem, size_t rows, Rng* rng) {
  Dataset dataset;
  dataset.metrics = problem.metrics;
  dataset.features.columns = problem.featurizer->columns();
  while (dataset.rows.size() < rows) {
    const auto point = problem.space->Sample(
        problem.context, problem.space->Free(), 100'000, rng);
    CUBICML_CHECK(point.has_value());
    DatasetRow row;
    row.feasible = true;
    row.metrics = problem.measure(*point);
    for (size_t m = 0; m < row.metrics.size(); ++m) {
      row.metrics[m] *= std::exp(problem.noise[m] * rng->Normal());
    }
    problem.featurizer->Append(*point, problem.context, &dataset.features);
    dataset.rows.push_back(std::move(row));
  }
  return dataset;
}

// Mean milliseconds of processor time.
double TimeTraining(const Trainer& trainer, size_t rows) {
  constexpr uint64_t kRuns = 5;
  double sum = 0.0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const ConstrainedProblem problem =
        MakeConstrainedProblem(ConstraintKind::kTwo, seed);
    Rng rng(seed);
    const Dataset dataset = MakeRows(problem, rows, &rng);
    const std::clock_t begin = std::clock();
    CUBICML_CHECK(trainer.Train(dataset, Rng(seed), {}).ok());
    sum += static_cast<double>(std::clock() - begin);
  }
  return 1e3 * sum / (kRuns * static_cast<double>(CLOCKS_PER_SEC));
}

void RunTraining() {
  const std::unique_ptr<Trainer> dense = NewDenseTrainer();
  const std::unique_ptr<Trainer> chosen = NewKernelTrainer();
  std::printf(
      "| rows | one kind, ms | three kinds, ms | ratio |\n"
      "|---:|---:|---:|---:|\n");
  for (const size_t rows : {50U, 200U, 500U}) {
    const double one = TimeTraining(*dense, rows);
    const double three = TimeTraining(*chosen, rows);
    std::printf("| %zu | %.0f | %.0f | %.1f |\n", rows, one, three,
                three / one);
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  Options options;
  std::vector<std::string> names;
  for (const ConstraintKind kind : kConstraintKinds) {
    names.push_back(NameOf(kind));
  }
  CLI::App app("Measures searches of jobs whose metrics have bounds.",
               "constraint_bench");
  app.add_option("--kinds", options.kinds, "Of bounds; all unless given")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--first-seed", options.first_seed, "Of the first job")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seeds", options.seeds, "Jobs of each kind")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--trials", options.trials, "Of each job")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "That run at a time")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_flag("--dense", options.dense,
               "Models that take every knob for relevant to every metric");
  app.add_flag("--trace", options.trace, "Print each trial");
  app.add_flag("--training", options.training, "Time the training instead");
  CLI11_PARSE(app, argc, argv);
  if (options.training) {
    RunTraining();
  } else {
    Run(options);
  }
  return 0;
}

}  // namespace
}  // namespace cubicml::bench

int main(int argc, char** argv) { return cubicml::bench::Main(argc, argv); }
