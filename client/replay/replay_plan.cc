// SPDX-License-Identifier: Apache-2.0

#include "client/replay/replay_plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "client/replay/table_study.h"
#include "client/replay/tuner.h"

namespace cubicml {
namespace {

absl::StatusOr<std::vector<ReplayResult>> ListRuns(
    const ReplayPlan& plan, const std::vector<MeasuredTable>& tables) {
  std::vector<ReplayResult> runs;
  for (const MeasuredTable& table : tables) {
    for (const MeasuredProblem& problem : table.problems) {
      if (problem.measured == 0 ||
          problem.configurations.size() <
              static_cast<size_t>(plan.min_configurations)) {
        continue;
      }
      for (const std::string& searcher : plan.searchers) {
        for (int seed = 1; seed <= plan.seeds; ++seed) {
          runs.push_back(
              {&table, &problem, searcher, static_cast<uint64_t>(seed), {}});
        }
      }
    }
  }
  if (runs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no context has ", plan.min_configurations,
                     " configurations of which one works"));
  }
  return runs;
}

absl::Status RunOne(const ReplayPlan& plan, ReplayResult* run) {
  ReplayOptions options;
  CUBICML_ASSIGN_OR_RETURN(options.algorithm, ParseSearcher(run->searcher));
  options.seed = run->seed;
  options.trials = plan.trials;
  options.jobs = plan.jobs;
  options.retrain_every = plan.retrain_every;
  std::unique_ptr<Tuner> tuner;
  if (plan.server.empty()) {
    CUBICML_ASSIGN_OR_RETURN(tuner, NewInProcessTuner());
  } else {
    CUBICML_ASSIGN_OR_RETURN(tuner, NewRemoteTuner(plan.server));
    options.study_id = absl::StrFormat("replay-%016x", Rng::NewSeed());
  }
  const TableStudy study(*run->table, *run->problem);
  CUBICML_ASSIGN_OR_RETURN(run->trials, ReplayRun(study, options, tuner.get()));
  return absl::OkStatus();
}

// What the workers share.
class Board {
 public:
  Board(const ReplayPlan& plan, std::vector<ReplayResult> runs,
        const std::function<void(size_t, size_t)>& progress)
      : plan_(plan), progress_(progress), runs_(std::move(runs)) {}

  // Takes one run after another until none is left, or one has failed.
  void Work() {
    while (ReplayResult* run = Take()) Finish(*run, RunOne(plan_, run));
  }

  absl::StatusOr<std::vector<ReplayResult>> Result() {
    MutexLock lock(&mu_);
    if (!status_.ok()) return status_;
    return std::move(runs_);
  }

 private:
  ReplayResult* Take() {
    MutexLock lock(&mu_);
    if (!status_.ok() || taken_ == runs_.size()) return nullptr;
    return &runs_[taken_++];
  }

  void Finish(const ReplayResult& run, const absl::Status& status) {
    MutexLock lock(&mu_);
    if (status_.ok() && !status.ok()) {
      status_ = WithContext(
          status, absl::StrCat("table ", run.table->spec.name, " (",
                               DescribeContext(*run.table, *run.problem), "), ",
                               run.searcher, ", seed ", run.seed));
    }
    progress_(++done_, runs_.size());
  }

  const ReplayPlan& plan_;
  const std::function<void(size_t, size_t)>& progress_;
  Mutex mu_;
  // Elements are worked on by who took them, without the lock.
  std::vector<ReplayResult> runs_;
  size_t taken_ ABSL_GUARDED_BY(mu_) = 0;
  size_t done_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<v1::Algorithm> ParseSearcher(absl::string_view name) {
  if (name == "default") return v1::DEFAULT;
  if (name == "random") return v1::RANDOM;
  if (name == "reinforce") return v1::REINFORCE;
  if (name == "exhaustive") return v1::EXHAUSTIVE;
  return absl::InvalidArgumentError(
      absl::StrCat("searcher '", name,
                   "' is not one of default, random, reinforce, exhaustive"));
}

absl::StatusOr<std::vector<ReplayResult>> RunPlan(
    const ReplayPlan& plan, const std::vector<MeasuredTable>& tables,
    const std::function<void(size_t done, size_t all)>& progress) {
  for (const std::string& searcher : plan.searchers) {
    CUBICML_RETURN_IF_ERROR(ParseSearcher(searcher).status());
  }
  CUBICML_ASSIGN_OR_RETURN(std::vector<ReplayResult> runs,
                           ListRuns(plan, tables));
  const size_t workers = std::clamp<size_t>(plan.workers, 1, runs.size());
  Board board(plan, std::move(runs), progress);
  {
    ThreadPool pool("replay", workers, workers);
    for (size_t i = 0; i < workers; ++i) {
      pool.TrySchedule([&board] { board.Work(); });
    }
  }
  return board.Result();
}

}  // namespace cubicml
