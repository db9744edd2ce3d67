// SPDX-License-Identifier: Apache-2.0
//
// The writing half of trial_tables.h; trial_import.cc is the reading one.

#include "client/cli/trial_tables.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json_views.h"
#include "client/cli/typed_values.h"
#include "cubicml/client/resource_names.h"
#include "cubicml/client/values.h"

namespace cubicml {
namespace {

// The columns of a trial itself, before and after those of the study.
constexpr const char* kFirstColumns[] = {"trial", "status", "reason"};
constexpr const char* kLastColumns[] = {"source", "client_id",   "attempt",
                                        "late",   "create_time", "end_time"};

std::vector<std::string> StudyColumns(const v1::Study& study) {
  std::vector<std::string> names;
  for (const v1::Parameter& parameter : study.parameters()) {
    names.push_back(parameter.name());
  }
  for (const v1::ContextField& field : study.context()) {
    names.push_back(field.name());
  }
  for (std::string& name : MetricNames(study)) {
    names.push_back(std::move(name));
  }
  return names;
}

// "" when there is no value. A vector whose words could be taken apart wrongly
// is a JSON array.
std::string ValueCell(const ValueMap& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) return "";
  const v1::Value& value = found->second;
  bool ambiguous = false;
  for (const v1::Value& element : value.list_value().values()) {
    ambiguous |= absl::StrContains(element.string_value(), ",") ||
                 absl::StartsWith(element.string_value(), "[");
  }
  return ambiguous ? ValueToJson(value).dump() : FormatValue(value);
}

std::string MetricCell(const v1::Trial& trial, const std::string& name) {
  const auto found = trial.metrics().find(name);
  return found == trial.metrics().end() ? "" : FormatNumber(found->second);
}

std::string ReasonCell(const v1::Trial& trial) {
  if (trial.reason() == v1::Trial::REASON_UNSPECIFIED) return "";
  return v1::Trial::Reason_Name(trial.reason());
}

// The values of knobs, by name: a vector has one for each of its elements.
void AddKnobs(const v1::Parameter& parameter, const ValueMap& values,
              std::map<std::string, v1::Value>* knobs) {
  const auto found = values.find(parameter.name());
  if (found == values.end()) return;
  if (!found->second.has_list_value()) {
    (*knobs)[parameter.name()] = found->second;
    return;
  }
  const auto& elements = found->second.list_value().values();
  for (int i = 0; i < elements.size(); ++i) {
    (*knobs)[absl::StrCat(parameter.name(), "[", i, "]")] = elements.Get(i);
  }
}

// In the order of declaration, so that an element follows its neighbour.
std::vector<std::string> KnobNames(const v1::Parameter& parameter) {
  if (parameter.repeat() == 0) return {parameter.name()};
  std::vector<std::string> names;
  for (int i = 0; i < parameter.repeat(); ++i) {
    names.push_back(absl::StrCat(parameter.name(), "[", i, "]"));
  }
  return names;
}

}  // namespace

std::string ShortTrialName(const v1::Trial& trial) {
  return absl::StrCat(StudyIdOf(trial.name()), "/",
                      TrialNumberOf(trial.name()));
}

Table TrialsTable(const v1::Study& study, std::span<const v1::Trial> trials) {
  Table table;
  table.headers = {"trial", "state", "reason"};
  const std::vector<std::string> metrics = MetricNames(study);
  table.headers.insert(table.headers.end(), metrics.begin(), metrics.end());
  for (const v1::Parameter& parameter : study.parameters()) {
    table.headers.push_back(parameter.name());
  }
  table.headers.push_back("source");
  for (const v1::Trial& trial : trials) {
    std::vector<std::string> row = {ShortTrialName(trial),
                                    v1::Trial::State_Name(trial.state()),
                                    ReasonCell(trial)};
    for (const std::string& metric : metrics) {
      row.push_back(MetricCell(trial, metric));
    }
    for (const v1::Parameter& parameter : study.parameters()) {
      row.push_back(ValueCell(trial.parameters(), parameter.name()));
    }
    row.push_back(v1::Trial::Source_Name(trial.suggestion().source()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<KnobDifference> FindDifferences(const v1::Study& study,
                                            const ValueMap& baseline,
                                            const ValueMap& best) {
  std::vector<KnobDifference> differences;
  for (const v1::Parameter& parameter : study.parameters()) {
    std::map<std::string, v1::Value> before;
    std::map<std::string, v1::Value> after;
    AddKnobs(parameter, baseline, &before);
    AddKnobs(parameter, best, &after);
    for (const std::string& name : KnobNames(parameter)) {
      const auto old = before.find(name);
      const auto now = after.find(name);
      KnobDifference difference;
      difference.knob = name;
      if (old != before.end()) difference.baseline = old->second;
      if (now != after.end()) difference.best = now->second;
      const bool same =
          difference.baseline.has_value() == difference.best.has_value() &&
          (!difference.best.has_value() ||
           google::protobuf::util::MessageDifferencer::Equals(
               *difference.baseline, *difference.best));
      if (!same) differences.push_back(std::move(difference));
    }
  }
  return differences;
}

std::vector<std::string> ExportHeaders(const v1::Study& study) {
  const std::vector<std::string> names = StudyColumns(study);
  const auto own = [&](const char* column) {
    const bool taken =
        std::find(names.begin(), names.end(), column) != names.end();
    return absl::StrCat(taken ? "cubicml_" : "", column);
  };
  std::vector<std::string> headers;
  for (const char* column : kFirstColumns) headers.push_back(own(column));
  headers.insert(headers.end(), names.begin(), names.end());
  for (const char* column : kLastColumns) headers.push_back(own(column));
  return headers;
}

std::vector<std::string> ExportRow(const v1::Study& study,
                                   const v1::Trial& trial) {
  std::vector<std::string> row = {absl::StrCat(TrialNumberOf(trial.name())),
                                  v1::Trial::State_Name(trial.state()),
                                  ReasonCell(trial)};
  for (const v1::Parameter& parameter : study.parameters()) {
    row.push_back(ValueCell(trial.parameters(), parameter.name()));
  }
  for (const v1::ContextField& field : study.context()) {
    row.push_back(ValueCell(trial.context(), field.name()));
  }
  for (const std::string& metric : MetricNames(study)) {
    row.push_back(MetricCell(trial, metric));
  }
  row.push_back(v1::Trial::Source_Name(trial.suggestion().source()));
  row.push_back(trial.client_id());
  row.push_back(absl::StrCat(trial.attempt()));
  row.push_back(trial.late() ? "true" : "false");
  row.push_back(trial.has_create_time() ? FormatTimestamp(trial.create_time())
                                        : "");
  row.push_back(trial.has_end_time() ? FormatTimestamp(trial.end_time()) : "");
  return row;
}

}  // namespace cubicml
