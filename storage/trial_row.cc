// SPDX-License-Identifier: Apache-2.0

#include "storage/trial_row.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/json_text.h"
#include "storage/proto_time.h"

namespace cubicml {
namespace {

template <typename Map>
absl::Status CheckKeys(const Map& map, absl::string_view path) {
  for (const auto& entry : map) {
    CUBICML_RETURN_IF_ERROR(CheckUtf8(entry.first, path));
  }
  return absl::OkStatus();
}

// The strings that no JSON column holds.
absl::Status CheckTrialStrings(const v1::Trial& trial) {
  CUBICML_RETURN_IF_ERROR(CheckUtf8(trial.name(), "name"));
  CUBICML_RETURN_IF_ERROR(CheckUtf8(trial.client_id(), "client_id"));
  CUBICML_RETURN_IF_ERROR(CheckUtf8(trial.reason_detail(), "reason_detail"));
  CUBICML_RETURN_IF_ERROR(
      CheckUtf8(trial.suggestion().searcher(), "suggestion.searcher"));
  CUBICML_RETURN_IF_ERROR(CheckKeys(trial.suggestion().prediction().metrics(),
                                    "suggestion.prediction.metrics"));
  CUBICML_RETURN_IF_ERROR(
      CheckKeys(trial.intermediate().metrics(), "intermediate.metrics"));
  CUBICML_RETURN_IF_ERROR(CheckKeys(trial.labels(), "labels"));
  for (const auto& label : trial.labels()) {
    CUBICML_RETURN_IF_ERROR(CheckUtf8(label.second, "labels"));
  }
  return absl::OkStatus();
}

// Walks any message; only for studies, which are written seldom.
absl::Status CheckStrings(const google::protobuf::Message& message,
                          const std::string& prefix) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string path =
          absl::StrCat(prefix, field->name(),
                       field->is_repeated() ? absl::StrCat("[", i, "]") : "");
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        const std::string text =
            field->is_repeated()
                ? reflection.GetRepeatedString(message, field, i)
                : reflection.GetString(message, field);
        CUBICML_RETURN_IF_ERROR(CheckUtf8(text, path));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CUBICML_RETURN_IF_ERROR(
            CheckStrings(field->is_repeated()
                             ? reflection.GetRepeatedMessage(message, field, i)
                             : reflection.GetMessage(message, field),
                         absl::StrCat(path, ".")));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::string& FormatTrialState(v1::Trial::State state) {
  return v1::Trial::State_Name(state);
}
const std::string& FormatTrialReason(v1::Trial::Reason reason) {
  return v1::Trial::Reason_Name(reason);
}
const std::string& FormatTrialSource(v1::Trial::Source source) {
  return v1::Trial::Source_Name(source);
}

absl::StatusOr<TrialRow> MakeTrialRow(const v1::Trial& trial) {
  CUBICML_RETURN_IF_ERROR(CheckTrialStrings(trial));
  TrialRow row;
  if (trial.has_end_time()) {
    row.end_time_us = MicrosFromTimestamp(trial.end_time());
  }
  if (trial.has_lease_expire_time()) {
    row.lease_expire_time_us = MicrosFromTimestamp(trial.lease_expire_time());
  }
  CUBICML_RETURN_IF_ERROR(
      AppendJsonObject(trial.parameters(), "parameters", &row.parameters));
  CUBICML_RETURN_IF_ERROR(
      AppendJsonObject(trial.context(), "context", &row.context));
  CUBICML_RETURN_IF_ERROR(
      AppendJsonObject(trial.metrics(), "metrics", &row.metrics));
  trial.SerializeToString(&row.trial);
  return row;
}

std::optional<double> ObjectiveOf(const v1::Trial& trial,
                                  const std::string& metric) {
  const auto found = trial.metrics().find(metric);
  if (found == trial.metrics().end() || std::isnan(found->second)) {
    return std::nullopt;
  }
  return found->second;
}

std::string FirstObjective(const v1::Study& study) {
  if (study.objectives().empty()) return "";
  return study.objectives(0).metric().name();
}

FilterValue TrialFieldValue(const v1::Trial& trial, int64_t number,
                            std::optional<double> objective,
                            const FilterField& field) {
  if (field.name == "number") return number;
  if (field.name == "state") return FormatTrialState(trial.state());
  if (field.name == "reason") return FormatTrialReason(trial.reason());
  if (field.name == "source") {
    return FormatTrialSource(trial.suggestion().source());
  }
  if (field.name == "client_id") return trial.client_id();
  if (field.name == "attempt") return int64_t{trial.attempt()};
  if (field.name == "late") return int64_t{trial.late()};
  if (field.name == "objective") {
    return objective.has_value() ? FilterValue(*objective) : FilterValue();
  }
  if (field.name == "create_time") {
    return MicrosFromTimestamp(trial.create_time());
  }
  CUBICML_CHECK(field.name == "end_time");
  if (!trial.has_end_time()) return FilterValue();
  return MicrosFromTimestamp(trial.end_time());
}

FilterValue StudyFieldValue(const v1::Study& study, const FilterField& field,
                            absl::string_view key) {
  if (field.name == "name") return study.name();
  if (field.name == "display_name") return study.display_name();
  if (field.name == "create_time") {
    return MicrosFromTimestamp(study.create_time());
  }
  CUBICML_CHECK(field.name == "labels.");
  const auto found = study.labels().find(std::string(key));
  return found == study.labels().end() ? FilterValue()
                                       : FilterValue(found->second);
}

absl::Status CheckStudyStrings(const v1::Study& study) {
  return CheckStrings(study, "");
}

std::string FormatLabels(const v1::Study& study) {
  std::string text;
  // Cannot fail: CheckStudyStrings() has passed.
  CUBICML_CHECK(AppendJsonObject(study.labels(), "labels", &text).ok());
  return text;
}

}  // namespace cubicml
