// SPDX-License-Identifier: Apache-2.0
//
// A problem of a table as a study: its answers are looked up instead of run.

#ifndef CUBICML_CLIENT_REPLAY_TABLE_STUDY_H_
#define CUBICML_CLIENT_REPLAY_TABLE_STUDY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "client/replay/measured_table.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

// The metric that every study of a replay has as its objective.
inline constexpr char kObjectiveName[] = "objective";

// Immutable and thread-safe. The table must outlive it.
class TableStudy {
 public:
  TableStudy(const MeasuredTable& table, const MeasuredProblem& problem);

  // The study: domains from the values that the problem has, a table
  // constraint that leaves only configurations that were measured, and as
  // baseline the configuration `baseline`.
  v1::Study Make(v1::Algorithm algorithm, uint64_t seed, size_t baseline) const;

  // Adds the problem's context to a request.
  void SetContext(v1::SuggestTrialsRequest* request) const;

  // Which configuration the trial is; INTERNAL when none, which would be a
  // fault of the tuner.
  absl::StatusOr<size_t> Find(const v1::Trial& trial) const;

  // What the trial reports.
  v1::CompleteTrialRequest Complete(const v1::Trial& trial,
                                    size_t configuration) const;

  const MeasuredTable& table() const { return table_; }
  const MeasuredProblem& problem() const { return problem_; }

 private:
  v1::Parameter MakeParameter(size_t column) const;

  const MeasuredTable& table_;
  const MeasuredProblem& problem_;
  std::unordered_map<std::string, size_t> configuration_at_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_TABLE_STUDY_H_
