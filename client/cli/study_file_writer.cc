// SPDX-License-Identifier: Apache-2.0
//
// StudyToJson(): studies written with the keys of study files.

#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "client/cli/json_views.h"
#include "client/cli/study_file.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

void AddText(const char* key, const std::string& text, Json* json) {
  if (!text.empty()) (*json)[key] = text;
}

void AddScale(v1::Scale scale, Json* json) {
  if (scale == v1::SCALE_LOG) (*json)["scale"] = "log";
}

Json ParameterToJson(const v1::Parameter& parameter) {
  Json json = {{"name", parameter.name()}};
  if (parameter.has_integer()) {
    const v1::IntegerDomain& domain = parameter.integer();
    json["type"] = "integer";
    if (domain.values_size() > 0) {
      json["values"] = Json::array();
      for (const int64_t value : domain.values()) {
        json["values"].push_back(value);
      }
    } else {
      json["min"] = domain.min();
      json["max"] = domain.max();
      if (domain.step() != 0) json["step"] = domain.step();
    }
    AddScale(domain.scale(), &json);
  } else if (parameter.has_number()) {
    const v1::NumberDomain& domain = parameter.number();
    json["type"] = "number";
    json["min"] = domain.min();
    json["max"] = domain.max();
    if (domain.step() != 0) json["step"] = domain.step();
    AddScale(domain.scale(), &json);
  } else {
    json["type"] = "category";
    json["values"] = Json::array();
    for (const v1::Value& value : parameter.category().values()) {
      json["values"].push_back(ValueToJson(value));
    }
  }
  if (parameter.repeat() > 0) json["repeat"] = parameter.repeat();
  AddText("active_if", parameter.active_if(), &json);
  if (parameter.has_default_value()) {
    json["default"] = ValueToJson(parameter.default_value());
  }
  AddText("description", parameter.description(), &json);
  AddText("unit", parameter.unit(), &json);
  return json;
}

Json ContextFieldToJson(const v1::ContextField& field) {
  Json json = {
      {"name", field.name()},
      {"type", absl::AsciiStrToLower(v1::ValueType_Name(field.type()))}};
  if (field.has_default_value()) {
    json["default"] = ValueToJson(field.default_value());
  }
  if (field.optional()) json["optional"] = true;
  AddText("description", field.description(), &json);
  AddText("unit", field.unit(), &json);
  return json;
}

Json ConstraintToJson(const v1::Constraint& constraint) {
  if (constraint.has_expression() && constraint.description().empty()) {
    return Json(constraint.expression());
  }
  Json json = Json::object();
  if (constraint.has_expression()) {
    json["expression"] = constraint.expression();
  } else {
    json["columns"] = Json::array();
    for (const std::string& column : constraint.table().columns()) {
      json["columns"].push_back(column);
    }
    json["rows"] = Json::array();
    for (const v1::TableConstraint::Row& row : constraint.table().rows()) {
      Json values = Json::array();
      for (const v1::Value& value : row.values()) {
        values.push_back(ValueToJson(value));
      }
      json["rows"].push_back(std::move(values));
    }
  }
  AddText("description", constraint.description(), &json);
  return json;
}

Json ObjectiveToJson(const v1::Objective& objective) {
  Json json = {
      {"metric", objective.metric().name()},
      {"goal", absl::AsciiStrToLower(v1::Goal_Name(objective.goal()))}};
  AddText("unit", objective.metric().unit(), &json);
  AddText("description", objective.metric().description(), &json);
  return json;
}

Json MetricToJson(const v1::Metric& metric) {
  Json json = {{"name", metric.name()}};
  AddText("unit", metric.unit(), &json);
  AddText("description", metric.description(), &json);
  return json;
}

Json MetricConstraintToJson(const v1::MetricConstraint& constraint) {
  Json json = {{"metric", constraint.metric()}};
  if (constraint.has_min()) json["min"] = constraint.min();
  if (constraint.has_max()) json["max"] = constraint.max();
  if (constraint.relative_to_baseline()) json["relative_to_baseline"] = true;
  return json;
}

Json SettingsToJson(const v1::StudySettings& settings) {
  Json json = Json::object();
  if (settings.algorithm() != v1::ALGORITHM_UNSPECIFIED) {
    json["algorithm"] =
        absl::AsciiStrToLower(v1::Algorithm_Name(settings.algorithm()));
  }
  if (settings.seed() != 0) json["seed"] = settings.seed();
  if (settings.has_lease()) {
    json["lease"] = absl::FormatDuration(ToDuration(settings.lease()));
  }
  if (settings.initial_trials() != 0) {
    json["initial_trials"] = settings.initial_trials();
  }
  return json;
}

template <typename List, typename Convert>
void AddList(const char* key, const List& list, const Convert& convert,
             Json* json) {
  if (list.empty()) return;
  Json elements = Json::array();
  for (const auto& element : list) elements.push_back(convert(element));
  (*json)[key] = std::move(elements);
}

}  // namespace

Json StudyToJson(const v1::Study& study) {
  Json json = Json::object();
  AddText("id", StudyIdOf(study.name()), &json);
  AddText("display_name", study.display_name(), &json);
  AddList("objectives", study.objectives(), ObjectiveToJson, &json);
  AddList("metrics", study.metrics(), MetricToJson, &json);
  AddList("metric_constraints", study.metric_constraints(),
          MetricConstraintToJson, &json);
  AddList("parameters", study.parameters(), ParameterToJson, &json);
  AddList("context", study.context(), ContextFieldToJson, &json);
  AddList("constraints", study.constraints(), ConstraintToJson, &json);
  if (Json settings = SettingsToJson(study.settings()); !settings.empty()) {
    json["settings"] = std::move(settings);
  }
  if (study.labels_size() > 0) {
    const std::map<std::string, std::string> labels(study.labels().begin(),
                                                    study.labels().end());
    json["labels"] = labels;
  }
  AddText("etag", study.etag(), &json);
  if (study.has_create_time()) {
    json["create_time"] = FormatTimestamp(study.create_time());
  }
  if (study.has_update_time()) {
    json["update_time"] = FormatTimestamp(study.update_time());
  }
  if (study.has_progress()) json["progress"] = ProgressToJson(study.progress());
  return json;
}

}  // namespace cubicml
