// SPDX-License-Identifier: Apache-2.0

#include "server/core/optimal_trials.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

// A configuration with all objectives as things to maximise.
struct Candidate {
  TrialNumber number;  // its first trial that worked
  size_t row = 0;      // of that trial
  std::vector<double> goals;
};

// A configuration of a context, while its trials are added up.
struct Tally {
  Candidate candidate;  // goals are sums
  int64_t count = 0;
  int64_t failed = 0;
};

// The number that a value is compared by; nullopt for a string.
std::optional<double> Number(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return static_cast<double>(value.int64_value());
    case v1::Value::kDoubleValue:
      return value.double_value();
    case v1::Value::kBoolValue:
      return value.bool_value() ? 1.0 : 0.0;
    default:
      return std::nullopt;
  }
}

absl::Status CheckType(const v1::ContextField& field, const v1::Value& value) {
  bool fits = false;
  switch (field.type()) {
    case v1::INTEGER:
    case v1::NUMBER:
      fits = value.has_int64_value() || value.has_double_value();
      break;
    case v1::BOOLEAN:
      fits = value.has_bool_value();
      break;
    case v1::STRING:
      fits = value.has_string_value();
      break;
    default:
      break;
  }
  if (fits) return absl::OkStatus();
  return FieldError(
      absl::StrCat("context.", field.name()),
      absl::StrCat("must be of type ", v1::ValueType_Name(field.type())));
}

bool Matches(const Context::Field& field, const v1::Value& value) {
  if (!field.present) return false;
  const std::optional<double> number = Number(value);
  return number.has_value() ? field.number == *number
                            : field.text == value.string_value();
}

// Neither is better, and the first trial comes first.
bool Before(const Candidate& a, const Candidate& b) {
  for (size_t i = 0; i < a.goals.size(); ++i) {
    if (a.goals[i] != b.goals[i]) return a.goals[i] > b.goals[i];
  }
  return a.number < b.number;
}

bool Dominates(const Candidate& a, const Candidate& b) {
  for (size_t i = 0; i < a.goals.size(); ++i) {
    if (a.goals[i] < b.goals[i]) return false;
  }
  return a.goals != b.goals;
}

// REQUIRES: sorted by Before, so that no candidate is dominated by a later one.
std::vector<Candidate> ParetoFront(std::vector<Candidate> sorted) {
  std::vector<Candidate> front;
  for (Candidate& candidate : sorted) {
    // With two objectives the second can only grow along the front, so the last
    // of the front dominates whatever any of it does.
    const size_t first =
        candidate.goals.size() == 2 && !front.empty() ? front.size() - 1 : 0;
    bool dominated = false;
    for (size_t i = first; i < front.size() && !dominated; ++i) {
      dominated = Dominates(front[i], candidate);
    }
    if (!dominated) front.push_back(std::move(candidate));
  }
  return front;
}

// The objectives of a row as things to maximise; empty without one of them.
std::vector<double> GoalsOf(const StudyDefinition& definition,
                            const MeasuredRow& row) {
  std::vector<double> goals;
  for (size_t k = 0; k < definition.objectives(); ++k) {
    const double value = row.metrics[k];
    if (std::isnan(value)) return {};
    goals.push_back(definition.metrics()[k].maximize ? value : -value);
  }
  return goals;
}

void AddRow(const MeasuredRow& row, size_t index,
            const std::vector<double>& goals, Tally* tally) {
  Candidate& candidate = tally->candidate;
  ++tally->count;
  if (tally->count == 1 || row.number < candidate.number) {
    candidate.number = row.number;
    candidate.row = index;
  }
  candidate.goals.resize(goals.size());
  for (size_t k = 0; k < goals.size(); ++k) candidate.goals[k] += goals[k];
}

// Those that worked more often than not, in no order.
std::vector<Candidate> ListCandidates(const StudyDefinition& definition,
                                      const RowLog::Snapshot& rows,
                                      const std::vector<bool>& matches) {
  std::map<std::pair<int, absl::string_view>, Tally> tallies;
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& row = rows[i];
    const size_t group = static_cast<size_t>(row.group);
    // A context may have come after `matches` was made.
    if (group >= matches.size() || !matches[group]) continue;
    Tally& tally = tallies[{row.group, row.key}];
    if (!row.feasible) {
      ++tally.failed;
      continue;
    }
    const std::vector<double> goals = GoalsOf(definition, row);
    if (!goals.empty()) AddRow(row, i, goals, &tally);
  }
  std::vector<Candidate> candidates;
  for (auto& [configuration, tally] : tallies) {
    if (tally.count <= tally.failed) continue;
    for (double& goal : tally.candidate.goals) {
      goal /= static_cast<double>(tally.count);
    }
    candidates.push_back(std::move(tally.candidate));
  }
  return candidates;
}

}  // namespace

absl::StatusOr<std::vector<bool>> MatchContexts(
    const StudyDefinition& definition, const std::vector<Context>& contexts,
    const ValueMap& wanted) {
  std::vector<bool> matches(contexts.size(), true);
  const std::vector<v1::ContextField>& fields =
      definition.space()->context_fields();
  for (const auto& [name, value] : wanted) {
    CUBICML_RETURN_IF_ERROR(CheckIdentifier("context", name));
    const auto field =
        std::find_if(fields.begin(), fields.end(),
                     [&, &key = name](const v1::ContextField& candidate) {
                       return candidate.name() == key;
                     });
    if (field == fields.end()) {
      return FieldError(absl::StrCat("context.", name),
                        "is not declared by the study");
    }
    CUBICML_RETURN_IF_ERROR(CheckType(*field, value));
    const size_t index = static_cast<size_t>(field - fields.begin());
    for (size_t i = 0; i < contexts.size(); ++i) {
      if (!Matches(contexts[i].fields[index], value)) matches[i] = false;
    }
  }
  return matches;
}

std::vector<TrialNumber> FindOptimalTrials(const StudyDefinition& definition,
                                           const RowLog::Snapshot& rows,
                                           const std::vector<bool>& matches,
                                           size_t limit) {
  std::vector<Candidate> candidates = ListCandidates(definition, rows, matches);
  const size_t objectives = definition.objectives();
  if (objectives == 1) {
    const size_t kept = std::min(limit, candidates.size());
    std::partial_sort(candidates.begin(),
                      candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                      candidates.end(), Before);
  } else {
    std::sort(candidates.begin(), candidates.end(), Before);
    candidates = ParetoFront(std::move(candidates));
  }
  candidates.resize(std::min(limit, candidates.size()));
  std::vector<TrialNumber> numbers;
  numbers.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    numbers.push_back(candidate.number);
  }
  return numbers;
}

std::vector<size_t> RankConfigurations(const StudyDefinition& definition,
                                       const RowLog::Snapshot& rows,
                                       int group) {
  std::vector<bool> matches(static_cast<size_t>(group) + 1, false);
  matches.back() = true;
  std::vector<Candidate> candidates = ListCandidates(definition, rows, matches);
  std::sort(candidates.begin(), candidates.end(), Before);
  std::vector<size_t> order;
  for (const Candidate& candidate : candidates) order.push_back(candidate.row);
  return order;
}

}  // namespace cubicml
