// SPDX-License-Identifier: Apache-2.0
//
// One run of the tuner against one problem of a table.

#ifndef CUBICML_CLIENT_REPLAY_REPLAY_RUN_H_
#define CUBICML_CLIENT_REPLAY_REPLAY_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/table_study.h"
#include "client/replay/tuner.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

struct ReplayOptions {
  // Must be free; the study is deleted at the end.
  std::string study_id = "replay";
  v1::Algorithm algorithm = v1::DEFAULT;
  uint64_t seed = 1;  // not 0, which leaves it to the service
  int trials = 100;
  int jobs = 1;           // in flight at a time
  int retrain_every = 1;  // completed trials
};

struct ReplayedTrial {
  size_t configuration = 0;  // of the problem
  v1::Trial::Source source = v1::Trial::SOURCE_UNSPECIFIED;
  std::string searcher;
  bool ok = false;
  double objective = 0.0;
  // Percent below the best of the problem after this trial; 100 before
  // anything has worked.
  double percent_below_best = 100.0;
};

// The trials in the order in which they ended; fewer than asked for when the
// table has no more configurations. Jobs take equally long, so they end in the
// order in which they started. The tuner's errors.
absl::StatusOr<std::vector<ReplayedTrial>> ReplayRun(
    const TableStudy& study, const ReplayOptions& options, Tuner* tuner);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_REPLAY_RUN_H_
