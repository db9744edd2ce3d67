// SPDX-License-Identifier: Apache-2.0

#include "client/cli/study_file.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/cli/scalar.h"
#include "client/cli/study_file_parameters.h"
#include "client/cli/yaml_node.h"
#include "cubicml/client/errors.h"
#include "cubicml/client/resource_names.h"
#include "cubicml/client/values.h"

namespace cubicml {
namespace {

constexpr absl::string_view kStudyKeys[] = {
    "id",          "display_name", "objectives",  "metrics",
    "parameters",  "context",      "constraints", "metric_constraints",
    "settings",    "labels",       "seed",        "etag",
    "create_time", "update_time",  "progress"};
constexpr absl::string_view kObjectiveKeys[] = {"metric", "goal", "unit",
                                                "description"};
constexpr absl::string_view kMetricKeys[] = {"name", "unit", "description"};
constexpr absl::string_view kMetricConstraintKeys[] = {"metric", "min", "max",
                                                       "relative_to_baseline"};
constexpr absl::string_view kConstraintKeys[] = {"expression", "columns",
                                                 "rows", "description"};
constexpr absl::string_view kSettingKeys[] = {"algorithm", "seed", "lease",
                                              "initial_trials"};
constexpr std::pair<absl::string_view, int> kGoals[] = {
    {"maximize", v1::MAXIMIZE},
    {"minimize", v1::MINIMIZE},
    {"maximise", v1::MAXIMIZE},
    {"minimise", v1::MINIMIZE}};
constexpr std::pair<absl::string_view, int> kAlgorithms[] = {
    {"default", v1::DEFAULT},
    {"random", v1::RANDOM},
    {"reinforce", v1::REINFORCE},
    {"exhaustive", v1::EXHAUSTIVE}};

absl::Status ReadObjective(const YamlNode& node, v1::Objective* objective) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kObjectiveKeys));
  v1::Metric* metric = objective->mutable_metric();
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "metric", kRequired, metric->mutable_name()));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "unit", kOptional, metric->mutable_unit()));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "description", kOptional, metric->mutable_description()));
  CUBICML_ASSIGN_OR_RETURN(const YamlNode goal, node.Get("goal"));
  CUBICML_ASSIGN_OR_RETURN(const int number, ReadWord(goal, kGoals));
  objective->set_goal(static_cast<v1::Goal>(number));
  return absl::OkStatus();
}

absl::Status ReadMetric(const YamlNode& node, v1::Metric* metric) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kMetricKeys));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "name", kRequired, metric->mutable_name()));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "unit", kOptional, metric->mutable_unit()));
  return ReadText(node, "description", kOptional,
                  metric->mutable_description());
}

absl::Status ReadMetricConstraint(const YamlNode& node,
                                  v1::MetricConstraint* constraint) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kMetricConstraintKeys));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "metric", kRequired, constraint->mutable_metric()));
  if (const auto min = node.Find("min"); min.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const double bound, min->Number());
    constraint->set_min(bound);
  }
  if (const auto max = node.Find("max"); max.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const double bound, max->Number());
    constraint->set_max(bound);
  }
  if (!constraint->has_min() && !constraint->has_max()) {
    return node.Error("needs 'min' or 'max'");
  }
  if (const auto relative = node.Find("relative_to_baseline");
      relative.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const bool truth, relative->Truth());
    constraint->set_relative_to_baseline(truth);
  }
  return absl::OkStatus();
}

// Values of a column take the type that the study declares for it.
absl::Status ReadTable(const YamlNode& node, const v1::Study& study,
                       v1::TableConstraint* table) {
  CUBICML_ASSIGN_OR_RETURN(const YamlNode columns_node, node.Get("columns"));
  CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> columns,
                           columns_node.Elements());
  for (const YamlNode& column : columns) {
    CUBICML_ASSIGN_OR_RETURN(*table->add_columns(), column.Text());
  }
  CUBICML_ASSIGN_OR_RETURN(const YamlNode rows_node, node.Get("rows"));
  CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> rows,
                           rows_node.Elements());
  for (const YamlNode& row_node : rows) {
    CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> values,
                             row_node.Elements());
    if (values.size() != columns.size()) {
      return row_node.Error(absl::StrCat("has ", values.size(), " values for ",
                                         columns.size(), " columns"));
    }
    v1::TableConstraint::Row* row = table->add_rows();
    for (size_t i = 0; i < values.size(); ++i) {
      CUBICML_ASSIGN_OR_RETURN(v1::Value value, values[i].Scalar());
      const std::string& column = table->columns(static_cast<int>(i));
      if (IsNumberColumn(study, column)) value = AsNumber(value);
      *row->add_values() = std::move(value);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadConstraint(const YamlNode& node, const v1::Study& study,
                            v1::Constraint* constraint) {
  if (!node.IsMap()) {
    CUBICML_ASSIGN_OR_RETURN(*constraint->mutable_expression(), node.Text());
    return absl::OkStatus();
  }
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kConstraintKeys));
  CUBICML_RETURN_IF_ERROR(ReadText(node, "description", kOptional,
                                   constraint->mutable_description()));
  const auto expression = node.Find("expression");
  if (expression.has_value() == node.Find("columns").has_value()) {
    return node.Error("needs either 'expression' or 'columns' and 'rows'");
  }
  if (!expression.has_value()) {
    return ReadTable(node, study, constraint->mutable_table());
  }
  if (const auto rows = node.Find("rows"); rows.has_value()) {
    return rows->Error("belongs to 'columns', not to an expression");
  }
  CUBICML_ASSIGN_OR_RETURN(*constraint->mutable_expression(),
                           expression->Text());
  return absl::OkStatus();
}

absl::Status ReadSeed(const YamlNode& node, v1::StudySettings* settings) {
  CUBICML_ASSIGN_OR_RETURN(const std::string text, node.Text());
  uint64_t seed = 0;
  if (!absl::SimpleAtoi(text, &seed)) {
    return node.Error(
        absl::StrCat("'", text, "' is not an integer from 0 to 2^64 - 1"));
  }
  settings->set_seed(seed);
  return absl::OkStatus();
}

absl::Status ReadSettings(const YamlNode& node, v1::StudySettings* settings) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kSettingKeys));
  if (const auto algorithm = node.Find("algorithm"); algorithm.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const int number,
                             ReadWord(*algorithm, kAlgorithms));
    settings->set_algorithm(static_cast<v1::Algorithm>(number));
  }
  if (const auto seed = node.Find("seed"); seed.has_value()) {
    CUBICML_RETURN_IF_ERROR(ReadSeed(*seed, settings));
  }
  if (const auto lease = node.Find("lease"); lease.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const std::string text, lease->Text());
    const absl::StatusOr<absl::Duration> duration = ParsePositiveDuration(text);
    if (!duration.ok()) return lease->Error(duration.status().message());
    absl::Duration rest;
    settings->mutable_lease()->set_seconds(
        absl::IDivDuration(*duration, absl::Seconds(1), &rest));
    settings->mutable_lease()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  if (const auto initial = node.Find("initial_trials"); initial.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const int32_t number, ReadInt32(*initial));
    settings->set_initial_trials(number);
  }
  return absl::OkStatus();
}

absl::Status ReadLabels(const YamlNode& node, v1::Study* study) {
  if (!node.IsMap()) return node.Error("must be a map of keys and values");
  for (const std::string& key : node.Keys()) {
    CUBICML_ASSIGN_OR_RETURN(const YamlNode value, node.Get(key));
    CUBICML_ASSIGN_OR_RETURN((*study->mutable_labels())[key], value.Text());
  }
  return absl::OkStatus();
}

// Reads a list with `read(element, message)`, if it is there.
template <typename Message, typename Read>
absl::Status ReadList(const YamlNode& document, absl::string_view key,
                      google::protobuf::RepeatedPtrField<Message>* list,
                      const Read& read) {
  const auto node = document.Find(key);
  if (!node.has_value()) return absl::OkStatus();
  CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> elements,
                           node->Elements());
  for (const YamlNode& element : elements) {
    CUBICML_RETURN_IF_ERROR(read(element, list->Add()));
  }
  return absl::OkStatus();
}

absl::Status ReadLists(const YamlNode& document, v1::Study* study) {
  CUBICML_RETURN_IF_ERROR(ReadList(document, "objectives",
                                   study->mutable_objectives(), ReadObjective));
  CUBICML_RETURN_IF_ERROR(
      ReadList(document, "metrics", study->mutable_metrics(), ReadMetric));
  CUBICML_RETURN_IF_ERROR(ReadList(document, "metric_constraints",
                                   study->mutable_metric_constraints(),
                                   ReadMetricConstraint));
  CUBICML_RETURN_IF_ERROR(ReadList(document, "parameters",
                                   study->mutable_parameters(), ReadParameter));
  CUBICML_RETURN_IF_ERROR(ReadList(document, "context",
                                   study->mutable_context(), ReadContextField));
  return ReadList(document, "constraints", study->mutable_constraints(),
                  [study](const YamlNode& node, v1::Constraint* constraint) {
                    return ReadConstraint(node, *study, constraint);
                  });
}

void NoteLines(const YamlNode& node, std::map<std::string, int>* lines) {
  if (!node.path().empty()) (*lines)[node.path()] = node.line();
  if (node.IsMap()) {
    for (const std::string& key : node.Keys()) {
      if (const auto child = node.Find(key)) NoteLines(*child, lines);
    }
  } else if (node.IsList()) {
    const std::vector<YamlNode> elements = *node.Elements();
    for (const YamlNode& child : elements) NoteLines(child, lines);
  }
}

std::vector<std::string> FieldsOf(const YamlNode& document) {
  std::set<std::string> fields;
  for (const std::string& key : document.Keys()) {
    const bool output_only = key == "id" || key == "etag" ||
                             key == "create_time" || key == "update_time" ||
                             key == "progress";
    if (!output_only) fields.insert(key == "seed" ? "settings" : key);
  }
  return std::vector<std::string>(fields.begin(), fields.end());
}

}  // namespace

absl::StatusOr<StudyFile> ParseStudyFile(absl::string_view text,
                                         absl::string_view file_name) {
  CUBICML_ASSIGN_OR_RETURN(const YamlNode document,
                           YamlNode::Parse(text, file_name));
  CUBICML_RETURN_IF_ERROR(document.CheckMap(kStudyKeys));
  StudyFile file;
  file.file_name = std::string(file_name);
  v1::Study& study = file.study;
  if (const auto id = document.Find("id"); id.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(file.id, id->Text());
    const auto name = ParseStudyName(*file.id);
    if (!name.ok()) return id->Error(name.status().message());
  }
  CUBICML_RETURN_IF_ERROR(ReadText(document, "display_name", kOptional,
                                   study.mutable_display_name()));
  CUBICML_RETURN_IF_ERROR(ReadLists(document, &study));
  const auto settings = document.Find("settings");
  if (settings.has_value()) {
    CUBICML_RETURN_IF_ERROR(ReadSettings(*settings, study.mutable_settings()));
  }
  if (const auto seed = document.Find("seed"); seed.has_value()) {
    if (settings.has_value() && settings->Find("seed").has_value()) {
      return seed->Error("is in settings, too");
    }
    CUBICML_RETURN_IF_ERROR(ReadSeed(*seed, study.mutable_settings()));
  }
  if (const auto labels = document.Find("labels"); labels.has_value()) {
    CUBICML_RETURN_IF_ERROR(ReadLabels(*labels, &study));
  }
  file.fields = FieldsOf(document);
  NoteLines(document, &file.lines);
  return file;
}

absl::Status LocateError(const StudyFile& file, const absl::Status& status) {
  const std::optional<std::string> field = FieldOf(status);
  if (!field.has_value()) return status;
  // The path of the message without what a study file does not have.
  static const std::set<absl::string_view>& not_in_files =
      *new std::set<absl::string_view>{"study",    "integer", "number",
                                       "category", "table",   "metric"};
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(*field, '.')) {
    if (not_in_files.count(part) > 0) continue;
    parts.push_back(part == "default_value" ? "default" : std::string(part));
  }
  while (!parts.empty()) {
    const auto found = file.lines.find(absl::StrJoin(parts, "."));
    if (found != file.lines.end()) {
      return WithContext(status,
                         absl::StrCat(file.file_name, ":", found->second));
    }
    // values[3] -> values, then the component itself.
    const size_t bracket = parts.back().rfind('[');
    if (bracket != std::string::npos && bracket > 0) {
      parts.back().resize(bracket);
    } else {
      parts.pop_back();
    }
  }
  return WithContext(status, file.file_name);
}

}  // namespace cubicml
