// SPDX-License-Identifier: Apache-2.0
//
// What became of the trials of one `cubicml run`, and what the user is told of
// it at the end.

#ifndef CUBICML_CLIENT_CLI_RUN_TRIAL_TALLY_H_
#define CUBICML_CLIENT_CLI_RUN_TRIAL_TALLY_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "client/cli/run/outcome.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Not thread-safe.
class TrialTally {
 public:
  // `outcome` is as the service took it, or, where the service could not be
  // reached, as it will be told.
  void Add(const v1::Study& study, const v1::Trial& trial,
           const Outcome& outcome);

  int succeeded() const { return succeeded_; }

  // When all that was measured failed, or the baseline did: how, and what
  // helps. Else "". `many`: a single one may fail.
  std::string DescribeFailures(const v1::Study& study, bool many) const;

 private:
  std::string AdviceOn(v1::Trial::Reason reason) const;

  int succeeded_ = 0;
  std::map<v1::Trial::Reason, int> failures_;
  // What the service wants and trials with NO_MEASUREMENT did not have.
  std::set<std::string> unmeasured_;
  std::optional<ValueMap> baseline_;  // once it was handed out
  bool baseline_measured_ = false;
  std::optional<v1::Trial::Reason> baseline_failure_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_TRIAL_TALLY_H_
