// SPDX-License-Identifier: Apache-2.0
//
// What a search is worth where metrics have bounds, on synthetic jobs: percent
// below the best configuration that keeps them after 10, 20 and 40 trials, the
// share of trials that broke one, and how true the model's chances were.
//
//   constraint_bench [--kinds=smooth,tight] [--seeds=N] [--trials=N]
//                    [--trace]

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "predictor/kernel_trainer.h"
#include "predictor/searcher.h"
#include "tests/predictor/constrained_problem.h"

namespace cubicml::bench {
namespace {

struct Options {
  std::vector<std::string> kinds;  // empty: all
  int seeds = 10;
  int trials = 40;
  bool trace = false;
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
  const std::unique_ptr<Trainer> trainer = NewKernelTrainer();
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
    for (int seed = 1; seed <= options.seeds; ++seed) {
      const auto s = static_cast<uint64_t>(seed);
      const ConstrainedProblem problem = MakeConstrainedProblem(kind, s);
      feasible += problem.feasible_share / options.seeds;
      const std::vector<ConstrainedTrial> trials = SearchConstrained(
          problem, trainer.get(), *searcher, s, options.trials);
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
    Print(NameOf(kind), "default", feasible, of_default, options.seeds);
    Print(NameOf(kind), "random", feasible, of_random, 10.0 * options.seeds);
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
    } else if (absl::StartsWith(arg, "--seeds=")) {
      (void)absl::SimpleAtoi(value("--seeds="), &options.seeds);
    } else if (absl::StartsWith(arg, "--trials=")) {
      (void)absl::SimpleAtoi(value("--trials="), &options.trials);
    } else if (arg == "--trace") {
      options.trace = true;
    }
  }
  return options;
}

}  // namespace
}  // namespace cubicml::bench

int main(int argc, char** argv) {
  cubicml::bench::Run(cubicml::bench::Parse(argc, argv));
  return 0;
}
