// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/trial_tally.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/typed_values.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {

void TrialTally::Add(const v1::Study& study, const v1::Trial& trial,
                     const Outcome& outcome) {
  if (trial.suggestion().source() == v1::Trial::BASELINE) {
    baseline_ = trial.parameters();
  }
  // Measured again it is a REPEAT.
  const bool baseline =
      baseline_.has_value() && SameValues(*baseline_, trial.parameters());
  if (outcome.state == v1::Trial::SUCCEEDED) {
    ++succeeded_;
    baseline_measured_ |= baseline;
  }
  if (outcome.state != v1::Trial::INFEASIBLE) return;
  ++failures_[outcome.reason];
  if (baseline) baseline_failure_ = outcome.reason;
  if (outcome.reason != v1::Trial::NO_MEASUREMENT) return;
  const auto require = [&](const std::string& metric) {
    if (outcome.metrics.count(metric) == 0) unmeasured_.insert(metric);
  };
  for (const v1::Objective& objective : study.objectives()) {
    require(objective.metric().name());
  }
  for (const v1::MetricConstraint& constraint : study.metric_constraints()) {
    require(constraint.metric());
  }
}

std::string TrialTally::DescribeFailures(const v1::Study& study,
                                         bool many) const {
  if (failures_.empty()) return "";
  // One trial that fails is a part of tuning, unless it is the baseline.
  if (succeeded_ > 0 || !many) {
    if (!baseline_failure_.has_value() || baseline_measured_) return "";
    return absl::StrCat("the baseline failed (",
                        v1::Trial::Reason_Name(*baseline_failure_),
                        "), so there is nothing to compare with; ",
                        AdviceOn(*baseline_failure_));
  }
  v1::Trial::Reason most = failures_.begin()->first;
  std::vector<std::string> counts;
  for (const auto& [reason, count] : failures_) {
    if (count > failures_.at(most)) most = reason;
    counts.push_back(absl::StrCat(v1::Trial::Reason_Name(reason), " ", count));
  }
  return absl::StrCat("no trial succeeded (", absl::StrJoin(counts, ", "),
                      "); ", AdviceOn(most), "; `cubicml trials list ",
                      StudyIdOf(study.name()), " -o yaml` has the details");
}

// What helps when jobs end like this.
std::string TrialTally::AdviceOn(v1::Trial::Reason reason) const {
  switch (reason) {
    case v1::Trial::NO_MEASUREMENT:
      return absl::StrCat(
          "let the job print ",
          unmeasured_.empty()
              ? "NAME=NUMBER of each objective and each metric with a "
                "constraint"
              : absl::StrCat(absl::StrJoin(unmeasured_, "=NUMBER and "),
                             "=NUMBER"),
          ", or pass --metric-regex or --metrics-file");
    case v1::Trial::OUT_OF_MEMORY:
      return "choose defaults that fit into memory, and constraints that keep "
             "to it";
    case v1::Trial::TIMEOUT:
      return "pass a longer --timeout, or let the job measure a shorter piece";
    case v1::Trial::METRIC_CONSTRAINT:
      return "loosen metric_constraints, or choose defaults that keep to them";
    default:
      return "look at what the job printed, and run the command once by hand";
  }
}

}  // namespace cubicml
