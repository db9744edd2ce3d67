// SPDX-License-Identifier: Apache-2.0

#include "client/replay/table_study.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

// From this ratio of the largest to the smallest on, positive values are taken
// for one of those that engineers double: batch sizes, degrees of parallelism.
constexpr double kLogRatio = 16.0;

template <typename T>
v1::Scale GuessScale(const std::set<T>& values) {
  const auto smallest = static_cast<double>(*values.begin());
  const auto largest = static_cast<double>(*values.rbegin());
  return smallest > 0.0 && largest >= kLogRatio * smallest ? v1::SCALE_LOG
                                                           : v1::SCALE_LINEAR;
}

v1::ValueType TypeOf(ColumnType type) {
  switch (type) {
    case ColumnType::kBoolean:
      return v1::BOOLEAN;
    case ColumnType::kInteger:
      return v1::INTEGER;
    case ColumnType::kNumber:
      return v1::NUMBER;
    case ColumnType::kString:
      break;
  }
  return v1::STRING;
}

// Separates values in a key; no value of a table holds it.
constexpr char kKeySeparator = '\x1F';

v1::Trial::Reason GuessReason(absl::string_view status) {
  const std::string lower = absl::AsciiStrToLower(status);
  if (absl::StrContains(lower, "oom") || absl::StrContains(lower, "memory")) {
    return v1::Trial::OUT_OF_MEMORY;
  }
  if (absl::StrContains(lower, "timeout") ||
      absl::StrContains(lower, "time-out")) {
    return v1::Trial::TIMEOUT;
  }
  return v1::Trial::CRASH;
}

}  // namespace

TableStudy::TableStudy(const MeasuredTable& table,
                       const MeasuredProblem& problem)
    : table_(table), problem_(problem) {
  for (size_t i = 0; i < problem.configurations.size(); ++i) {
    std::string key;
    for (size_t p = 0; p < table.params.size(); ++p) {
      absl::StrAppend(&key,
                      ValueKey(ParseCell(table.params[p],
                                         problem.configurations[i].values[p])),
                      std::string(1, kKeySeparator));
    }
    configuration_at_.emplace(std::move(key), i);
  }
}

v1::Parameter TableStudy::MakeParameter(size_t column) const {
  const MeasuredColumn& param = table_.params[column];
  v1::Parameter parameter;
  parameter.set_name(param.name);
  std::map<std::string, v1::Value> categories;
  std::set<int64_t> integers;
  std::set<double> numbers;
  for (const MeasuredConfiguration& one : problem_.configurations) {
    v1::Value value = ParseCell(param, one.values[column]);
    if (param.type == ColumnType::kInteger) {
      integers.insert(value.int64_value());
    } else if (param.type == ColumnType::kNumber) {
      numbers.insert(value.double_value());
    }
    categories.emplace(ValueKey(value), std::move(value));
  }
  if (!integers.empty()) {
    v1::IntegerDomain* domain = parameter.mutable_integer();
    for (const int64_t value : integers) domain->add_values(value);
    domain->set_scale(GuessScale(integers));
  } else if (numbers.size() > 1) {
    // The table constraint leaves of the range what was measured.
    v1::NumberDomain* domain = parameter.mutable_number();
    domain->set_min(*numbers.begin());
    domain->set_max(*numbers.rbegin());
    domain->set_scale(GuessScale(numbers));
  } else {
    for (auto& [key, value] : categories) {
      *parameter.mutable_category()->add_values() = value;
    }
  }
  return parameter;
}

v1::Study TableStudy::Make(v1::Algorithm algorithm, uint64_t seed,
                           size_t baseline) const {
  v1::Study study;
  study.set_display_name(absl::StrCat("replay of ", table_.spec.name));
  v1::TableConstraint* constraint = study.add_constraints()->mutable_table();
  for (size_t p = 0; p < table_.params.size(); ++p) {
    v1::Parameter* parameter = study.add_parameters();
    *parameter = MakeParameter(p);
    *parameter->mutable_default_value() = ParseCell(
        table_.params[p], problem_.configurations[baseline].values[p]);
    constraint->add_columns(table_.params[p].name);
  }
  for (const MeasuredConfiguration& one : problem_.configurations) {
    v1::TableConstraint::Row* row = constraint->add_rows();
    for (size_t p = 0; p < table_.params.size(); ++p) {
      *row->add_values() = ParseCell(table_.params[p], one.values[p]);
    }
  }
  for (const MeasuredColumn& column : table_.context) {
    v1::ContextField* field = study.add_context();
    field->set_name(column.name);
    field->set_type(TypeOf(column.type));
  }
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name(kObjectiveName);
  objective->mutable_metric()->set_description(table_.spec.objective);
  objective->set_goal(table_.spec.maximize ? v1::MAXIMIZE : v1::MINIMIZE);
  study.mutable_settings()->set_algorithm(algorithm);
  study.mutable_settings()->set_seed(seed);
  // Nothing is lost in a replay, and a lease must not end while we think.
  study.mutable_settings()->mutable_lease()->set_seconds(24 * 60 * 60);
  return study;
}

void TableStudy::SetContext(v1::SuggestTrialsRequest* request) const {
  for (size_t i = 0; i < table_.context.size(); ++i) {
    (*request->mutable_context())[table_.context[i].name] =
        ParseCell(table_.context[i], problem_.context[i]);
  }
}

absl::StatusOr<size_t> TableStudy::Find(const v1::Trial& trial) const {
  std::string key;
  for (const MeasuredColumn& param : table_.params) {
    const auto value = trial.parameters().find(param.name);
    if (value == trial.parameters().end()) {
      return absl::InternalError(
          absl::StrCat(trial.name(), " has no value for ", param.name));
    }
    absl::StrAppend(&key, ValueKey(value->second),
                    std::string(1, kKeySeparator));
  }
  const auto found = configuration_at_.find(key);
  if (found == configuration_at_.end()) {
    return absl::InternalError(absl::StrCat(
        trial.name(), " is a configuration that the table does not have"));
  }
  return found->second;
}

v1::CompleteTrialRequest TableStudy::Complete(const v1::Trial& trial,
                                              size_t configuration) const {
  const MeasuredConfiguration& one = problem_.configurations[configuration];
  v1::CompleteTrialRequest request;
  request.set_name(trial.name());
  request.set_client_id(trial.client_id());
  if (one.ok) {
    request.set_state(v1::Trial::SUCCEEDED);
    (*request.mutable_metrics())[kObjectiveName] = one.objective;
  } else {
    request.set_state(v1::Trial::INFEASIBLE);
    request.set_reason(GuessReason(one.status));
    request.set_reason_detail(one.status.substr(0, 1024));
  }
  return request;
}

}  // namespace cubicml
