// SPDX-License-Identifier: Apache-2.0
//
// All runs of a replay: every problem, with every searcher and seed.

#ifndef CUBICML_CLIENT_REPLAY_REPLAY_PLAN_H_
#define CUBICML_CLIENT_REPLAY_REPLAY_PLAN_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/measured_table.h"
#include "client/replay/replay_report.h"

namespace cubicml {

struct ReplayPlan {
  std::vector<std::string> searchers = {"default", "random"};
  int seeds = 20;  // 1, 2, ...
  int trials = 100;
  int jobs = 1;
  int retrain_every = 1;
  // Problems with fewer configurations, or with none that works, are left out.
  int min_configurations = 30;
  std::string server;  // address; empty: in this process
  size_t workers = 1;  // runs at a time
};

// The algorithm of a searcher's name; INVALID_ARGUMENT for another word.
absl::StatusOr<v1::Algorithm> ParseSearcher(absl::string_view name);

// The results in the order of tables, problems, searchers and seeds, whatever
// the number of workers. `progress` is called after each run, under a lock.
// INVALID_ARGUMENT when no problem is large enough; else the first error of a
// run, with where it happened.
absl::StatusOr<std::vector<ReplayResult>> RunPlan(
    const ReplayPlan& plan, const std::vector<MeasuredTable>& tables,
    const std::function<void(size_t done, size_t all)>& progress);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_REPLAY_PLAN_H_
