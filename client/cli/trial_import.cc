// SPDX-License-Identifier: Apache-2.0
//
// The reading half of trial_tables.h.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"
#include "client/cli/json_views.h"
#include "client/cli/scalar.h"
#include "client/cli/trial_tables.h"
#include "client/cli/typed_values.h"
#include "client/csv.h"

namespace cubicml {
namespace {

// Columns and keys that `trials export` writes and the service sets itself.
constexpr absl::string_view kSkipped[] = {
    "trial",       "source",      "client_id",         "attempt",
    "late",        "create_time", "end_time",          "name",
    "update_time", "suggestion",  "lease_expire_time", "intermediate",
    "labels"};

struct RowOutcome {
  v1::Trial::State state;
  v1::Trial::Reason reason;
};

// Words that people's tables use beside the names of states and reasons.
absl::StatusOr<RowOutcome> ParseOutcome(absl::string_view text) {
  static const auto& outcomes = *new std::map<std::string, RowOutcome>{
      {"succeeded", {v1::Trial::SUCCEEDED, v1::Trial::REASON_UNSPECIFIED}},
      {"success", {v1::Trial::SUCCEEDED, v1::Trial::REASON_UNSPECIFIED}},
      {"ok", {v1::Trial::SUCCEEDED, v1::Trial::REASON_UNSPECIFIED}},
      {"infeasible", {v1::Trial::INFEASIBLE, v1::Trial::OTHER}},
      {"failed", {v1::Trial::INFEASIBLE, v1::Trial::CRASH}},
      {"fail", {v1::Trial::INFEASIBLE, v1::Trial::CRASH}},
      {"error", {v1::Trial::INFEASIBLE, v1::Trial::CRASH}},
      {"crash", {v1::Trial::INFEASIBLE, v1::Trial::CRASH}},
      {"oom", {v1::Trial::INFEASIBLE, v1::Trial::OUT_OF_MEMORY}},
      {"out_of_memory", {v1::Trial::INFEASIBLE, v1::Trial::OUT_OF_MEMORY}},
      {"timeout", {v1::Trial::INFEASIBLE, v1::Trial::TIMEOUT}},
      {"invalid", {v1::Trial::INFEASIBLE, v1::Trial::INVALID}},
      {"metric_constraint",
       {v1::Trial::INFEASIBLE, v1::Trial::METRIC_CONSTRAINT}},
      {"no_measurement", {v1::Trial::INFEASIBLE, v1::Trial::NO_MEASUREMENT}},
      {"active", {v1::Trial::ACTIVE, v1::Trial::OTHER}},
      {"stopping", {v1::Trial::ACTIVE, v1::Trial::OTHER}},
      {"abandoned", {v1::Trial::ABANDONED, v1::Trial::OTHER}},
      {"expired", {v1::Trial::ABANDONED, v1::Trial::OTHER}},
      {"cancelled", {v1::Trial::ABANDONED, v1::Trial::OTHER}}};
  const auto found = outcomes.find(absl::AsciiStrToLower(text));
  if (found != outcomes.end()) return found->second;
  std::vector<absl::string_view> words;
  for (const auto& [word, outcome] : outcomes) words.push_back(word);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not an outcome such as SUCCEEDED, "
                   "OUT_OF_MEMORY or CRASH",
                   SuggestName(text, words)));
}

absl::Status SetReason(absl::string_view text, v1::Trial* trial) {
  v1::Trial::Reason reason = v1::Trial::REASON_UNSPECIFIED;
  if (!v1::Trial::Reason_Parse(absl::AsciiStrToUpper(text), &reason)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a reason"));
  }
  trial->set_reason(reason);
  return absl::OkStatus();
}

bool IsMeasurement(const v1::Trial& trial) {
  return trial.state() == v1::Trial::SUCCEEDED ||
         trial.state() == v1::Trial::INFEASIBLE;
}

const v1::Parameter* FindParameter(const v1::Study& study,
                                   absl::string_view name) {
  for (const v1::Parameter& parameter : study.parameters()) {
    if (parameter.name() == name) return &parameter;
  }
  return nullptr;
}

const v1::ContextField* FindContext(const v1::Study& study,
                                    absl::string_view name) {
  for (const v1::ContextField& field : study.context()) {
    if (field.name() == name) return &field;
  }
  return nullptr;
}

bool IsMetric(const v1::Study& study, absl::string_view name) {
  for (const v1::Objective& objective : study.objectives()) {
    if (objective.metric().name() == name) return true;
  }
  for (const v1::Metric& metric : study.metrics()) {
    if (metric.name() == name) return true;
  }
  return false;
}

// One cell of a row, by the name of its column.
absl::Status SetCell(const v1::Study& study, const std::string& name,
                     const std::string& cell, v1::Trial* trial) {
  if (cell.empty()) return absl::OkStatus();
  if (const v1::Parameter* parameter = FindParameter(study, name)) {
    CUBICML_ASSIGN_OR_RETURN((*trial->mutable_parameters())[name],
                             ParseParameterValue(*parameter, cell));
    return absl::OkStatus();
  }
  if (const v1::ContextField* field = FindContext(study, name)) {
    CUBICML_ASSIGN_OR_RETURN((*trial->mutable_context())[name],
                             ParseScalar(cell, field->type()));
    return absl::OkStatus();
  }
  double number = 0;
  if (!absl::SimpleAtod(cell, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", cell, "' is not a number"));
  }
  // What diverged is no measurement; the service refuses such numbers.
  if (std::isfinite(number)) (*trial->mutable_metrics())[name] = number;
  return absl::OkStatus();
}

enum ColumnKind { kSkip, kStatus, kReason, kCell };

absl::StatusOr<std::vector<ColumnKind>> ClassifyColumns(
    const v1::Study& study, const std::vector<std::string>& headers,
    const std::string& status_column) {
  std::vector<ColumnKind> kinds;
  std::vector<absl::string_view> names;
  for (const v1::Parameter& parameter : study.parameters()) {
    names.push_back(parameter.name());
  }
  std::set<std::string> seen;
  for (const std::string& header : headers) {
    const absl::string_view own = absl::StripPrefix(header, "cubicml_");
    if (!seen.insert(header).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("line 1: has the column '", header, "' twice"));
    }
    if (FindParameter(study, header) != nullptr ||
        FindContext(study, header) != nullptr || IsMetric(study, header)) {
      kinds.push_back(kCell);
    } else if (own == status_column || header == status_column) {
      kinds.push_back(kStatus);
    } else if (own == "reason") {
      kinds.push_back(kReason);
    } else if (std::find(std::begin(kSkipped), std::end(kSkipped), own) !=
               std::end(kSkipped)) {
      kinds.push_back(kSkip);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "line 1: '", header,
          "' is no parameter, context field or metric of the study",
          SuggestName(header, names)));
    }
  }
  return kinds;
}

absl::StatusOr<v1::Trial> ReadRow(const v1::Study& study,
                                  const std::vector<std::string>& headers,
                                  const std::vector<ColumnKind>& kinds,
                                  const std::vector<std::string>& row) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  std::string reason;
  for (size_t i = 0; i < row.size(); ++i) {
    absl::Status status;
    if (kinds[i] == kCell) {
      status = SetCell(study, headers[i], row[i], &trial);
    } else if (kinds[i] == kReason) {
      reason = row[i];
    } else if (kinds[i] == kStatus && !row[i].empty()) {
      const absl::StatusOr<RowOutcome> outcome = ParseOutcome(row[i]);
      status = outcome.status();
      if (outcome.ok()) {
        trial.set_state(outcome->state);
        trial.set_reason(outcome->reason);
      }
    }
    if (!status.ok()) return WithContext(status, headers[i]);
  }
  if (!reason.empty() && trial.state() == v1::Trial::INFEASIBLE) {
    CUBICML_RETURN_IF_ERROR(WithContext(SetReason(reason, &trial), "reason"));
  }
  return trial;
}

// A JSON value in the type that the study declares.
absl::StatusOr<v1::Value> TypedFromJson(v1::ValueType type, const Json& json) {
  CUBICML_ASSIGN_OR_RETURN(v1::Value value, ValueFromJson(json));
  if (type == v1::NUMBER && value.has_int64_value()) {
    return MakeValue(static_cast<double>(value.int64_value()));
  }
  if (type != v1::NUMBER || !value.has_list_value()) return value;
  for (v1::Value& element : *value.mutable_list_value()->mutable_values()) {
    if (!element.has_int64_value()) continue;
    element = MakeValue(static_cast<double>(element.int64_value()));
  }
  return value;
}

absl::Status SetJsonValues(const v1::Study& study, const Json& json,
                           v1::Trial* trial) {
  for (const char* section : {"parameters", "context"}) {
    if (!json.contains(section)) continue;
    if (!json[section].is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(section, ": must be an object"));
    }
    const bool parameters = section[0] == 'p';
    for (const auto& [name, member] : json[section].items()) {
      if (member.is_null()) continue;
      v1::ValueType type = v1::VALUE_TYPE_UNSPECIFIED;
      if (const auto* parameter = FindParameter(study, name);
          parameters && parameter != nullptr) {
        type = TypeOf(*parameter);
      } else if (const auto* field = FindContext(study, name);
                 !parameters && field != nullptr) {
        type = field->type();
      }
      absl::StatusOr<v1::Value> value = TypedFromJson(type, member);
      if (!value.ok()) {
        return WithContext(value.status(), absl::StrCat(section, ".", name));
      }
      ValueMap* values =
          parameters ? trial->mutable_parameters() : trial->mutable_context();
      (*values)[name] = *std::move(value);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Trial> TrialFromJson(const v1::Study& study,
                                        const Json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError("is not a JSON object");
  }
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  CUBICML_RETURN_IF_ERROR(SetJsonValues(study, json, &trial));
  for (const auto& [key, member] : json.items()) {
    if (key == "state" || key == "status") {
      if (!member.is_string()) {
        return absl::InvalidArgumentError(absl::StrCat(key, ": not a string"));
      }
      CUBICML_ASSIGN_OR_RETURN(const RowOutcome outcome,
                               ParseOutcome(member.get<std::string>()));
      trial.set_state(outcome.state);
      trial.set_reason(outcome.reason);
    } else if (key == "metrics" && member.is_object()) {
      for (const auto& [name, number] : member.items()) {
        if (number.is_null()) continue;
        if (!number.is_number()) {
          return absl::InvalidArgumentError(
              absl::StrCat("metrics.", name, ": is not a number"));
        }
        (*trial.mutable_metrics())[name] = number.get<double>();
      }
    } else if (key == "reason_detail" && member.is_string()) {
      trial.set_reason_detail(member.get<std::string>());
    } else if (key != "parameters" && key != "context" && key != "reason" &&
               std::find(std::begin(kSkipped), std::end(kSkipped), key) ==
                   std::end(kSkipped)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown key '", key, "'"));
    }
  }
  if (json.contains("reason") && json["reason"].is_string() &&
      trial.state() == v1::Trial::INFEASIBLE) {
    CUBICML_RETURN_IF_ERROR(
        SetReason(json["reason"].get<std::string>(), &trial));
  }
  return trial;
}

void Take(v1::Trial trial, int line, ImportedTrials* imported) {
  if (!IsMeasurement(trial)) {
    ++imported->skipped;
    return;
  }
  imported->trials.push_back(std::move(trial));
  imported->lines.push_back(line);
}

}  // namespace

absl::StatusOr<ImportedTrials> ImportCsv(const v1::Study& study,
                                         absl::string_view text,
                                         const std::string& status_column) {
  CUBICML_ASSIGN_OR_RETURN(std::vector<CsvRow> rows,
                           ParseCsvRows("line ", text));
  std::erase_if(rows, [](const CsvRow& row) { return row.blank(); });
  if (rows.empty()) return absl::InvalidArgumentError("line 1: no header");
  const std::vector<std::string>& headers = rows[0].cells;
  CUBICML_ASSIGN_OR_RETURN(const std::vector<ColumnKind> kinds,
                           ClassifyColumns(study, headers, status_column));
  ImportedTrials imported;
  for (size_t i = 1; i < rows.size(); ++i) {
    const CsvRow& row = rows[i];
    if (row.cells.size() != headers.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", row.line, ": has ", row.cells.size(),
                       " cells instead of ", headers.size()));
    }
    absl::StatusOr<v1::Trial> trial = ReadRow(study, headers, kinds, row.cells);
    if (!trial.ok()) {
      return WithContext(trial.status(), absl::StrCat("line ", row.line));
    }
    Take(*std::move(trial), static_cast<int>(row.line), &imported);
  }
  return imported;
}

absl::StatusOr<ImportedTrials> ImportJsonLines(const v1::Study& study,
                                               absl::string_view text) {
  ImportedTrials imported;
  int line = 0;
  for (const absl::string_view row : absl::StrSplit(text, '\n')) {
    ++line;
    if (absl::StripAsciiWhitespace(row).empty()) continue;
    const Json json = Json::parse(row.begin(), row.end(), nullptr,
                                  /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": is not JSON"));
    }
    absl::StatusOr<v1::Trial> trial = TrialFromJson(study, json);
    if (!trial.ok()) {
      return WithContext(trial.status(), absl::StrCat("line ", line));
    }
    Take(*std::move(trial), line, &imported);
  }
  return imported;
}

}  // namespace cubicml
