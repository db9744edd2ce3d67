// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/outcome.h"

#include <signal.h>

#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/cli/json_views.h"
#include "client/cli/typed_values.h"

namespace cubicml {
namespace {

std::string DescribeEnd(const JobEnd& end) {
  if (!end.by_signal) return absl::StrCat("exit code ", end.code);
  return absl::StrCat("killed by signal ", end.code, " (", strsignal(end.code),
                      ")");
}

std::map<std::string, double> CollectMetrics(const v1::Study& study,
                                             const JobEvidence& evidence,
                                             Aggregate aggregate) {
  std::map<std::string, double> metrics;
  for (const std::string& name : MetricNames(study)) {
    auto found = evidence.file_metrics.find(name);
    if (found == evidence.file_metrics.end()) {
      found = evidence.output.metrics.find(name);
      if (found == evidence.output.metrics.end()) continue;
    }
    const std::optional<double> value = found->second.Get(aggregate);
    if (value.has_value()) metrics[name] = *value;
  }
  return metrics;
}

std::vector<std::string> MissingObjectives(const v1::Study& study,
                                           const Outcome& outcome) {
  std::vector<std::string> missing;
  for (const v1::Objective& objective : study.objectives()) {
    const std::string& name = objective.metric().name();
    if (outcome.metrics.count(name) == 0) missing.push_back(name);
  }
  return missing;
}

// Did a stop signal that was not ours end the job, or one that we only sent on,
// such as a batch system's warning? A shell tells it as an exit code.
bool EndedFromOutside(const JobEnd& end) {
  return end.by_sent_signal || SignalRelay::IsStop(end.ExitCode() - 128);
}

bool RanOutOfMemory(const JobEvidence& evidence) {
  const JobEnd& end = evidence.end;
  // A launcher of many processes ends by itself when one of them was killed.
  const bool killed = end.ExitCode() == 128 + SIGKILL ||
                      !evidence.output.killed_process.empty();
  return !evidence.output.out_of_memory.empty() ||
         evidence.group_killed_for_memory ||
         (killed && evidence.kernel_killed_for_memory) ||
         evidence.out_of_memory_exit_codes.count(end.ExitCode()) > 0;
}

Outcome JudgeFailure(const JobEvidence& evidence, Outcome outcome) {
  const JobEnd& end = evidence.end;
  outcome.state = v1::Trial::INFEASIBLE;
  outcome.detail = DescribeEnd(end);
  if (RanOutOfMemory(evidence)) {
    outcome.reason = v1::Trial::OUT_OF_MEMORY;
    if (!evidence.output.out_of_memory.empty()) {
      absl::StrAppend(&outcome.detail, ": ", evidence.output.out_of_memory);
    } else if (evidence.group_killed_for_memory ||
               evidence.kernel_killed_for_memory) {
      absl::StrAppend(&outcome.detail, ": the kernel's out-of-memory killer");
    }
  } else if (EndedFromOutside(end)) {
    outcome.state = v1::Trial::ABANDONED;
    outcome.reason = v1::Trial::INTERRUPTED;
  } else {
    outcome.reason = v1::Trial::CRASH;
  }
  return outcome;
}

absl::Status AddObject(const Json& json,
                       std::map<std::string, MetricSeries>* metrics) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError("is not a JSON object of numbers");
  }
  for (const auto& [name, value] : json.items()) {
    if (value.is_null()) {
      // What JSON writers make of NaN.
      (*metrics)[name].Add(std::numeric_limits<double>::quiet_NaN());
    } else if (value.is_number()) {
      (*metrics)[name].Add(value.get<double>());
    }
  }
  return absl::OkStatus();
}

}  // namespace

Outcome JudgeJob(const v1::Study& study, const JobEvidence& evidence,
                 Aggregate aggregate) {
  const JobEnd& end = evidence.end;
  Outcome outcome;
  outcome.metrics = CollectMetrics(study, evidence, aggregate);
  const std::vector<std::string> missing = MissingObjectives(study, outcome);
  // The service wants what was measured so far, and refuses it by itself when
  // the trial is over.
  if (end.told_to_stop && end.interrupted_by == 0 && missing.empty()) {
    return outcome;
  }
  if (end.interrupted_by != 0 || end.told_to_stop) {
    outcome.state = v1::Trial::ABANDONED;
    outcome.reason = v1::Trial::INTERRUPTED;
    outcome.detail = end.told_to_stop
                         ? "stopped as the service asked"
                         : absl::StrCat("the launcher was told to stop by ",
                                        strsignal(end.interrupted_by));
    outcome.metrics.clear();
    return outcome;
  }
  if (end.timed_out) {
    outcome.state = v1::Trial::INFEASIBLE;
    outcome.reason = v1::Trial::TIMEOUT;
    outcome.detail = absl::StrCat("timed out, ", DescribeEnd(end));
    return outcome;
  }
  if (end.ExitCode() != 0) return JudgeFailure(evidence, std::move(outcome));
  if (!missing.empty()) {
    outcome.state = v1::Trial::INFEASIBLE;
    outcome.reason = v1::Trial::NO_MEASUREMENT;
    outcome.detail = absl::StrCat("the job ended well without a value of '",
                                  absl::StrJoin(missing, "', '"), "'");
  }
  return outcome;
}

absl::StatusOr<std::map<std::string, MetricSeries>> ParseMetricsFile(
    absl::string_view text) {
  std::map<std::string, MetricSeries> metrics;
  const Json whole = Json::parse(text.begin(), text.end(), nullptr,
                                 /*allow_exceptions=*/false);
  if (whole.is_array()) {
    for (const Json& element : whole) {
      CUBICML_RETURN_IF_ERROR(AddObject(element, &metrics));
    }
    return metrics;
  }
  if (!whole.is_discarded()) {
    CUBICML_RETURN_IF_ERROR(AddObject(whole, &metrics));
    return metrics;
  }
  int line = 0;
  for (const absl::string_view row : absl::StrSplit(text, '\n')) {
    ++line;
    if (absl::StripAsciiWhitespace(row).empty()) continue;
    const Json json = Json::parse(row.begin(), row.end(), nullptr,
                                  /*allow_exceptions=*/false);
    CUBICML_RETURN_IF_ERROR(
        WithContext(AddObject(json, &metrics), absl::StrCat("line ", line)));
  }
  return metrics;
}

}  // namespace cubicml
