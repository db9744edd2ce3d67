// SPDX-License-Identifier: Apache-2.0

#include "client/cli/json_views.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "base/status_macros.h"

namespace cubicml {
namespace {

Json NumberToJson(double number) {
  return std::isfinite(number) ? Json(number) : Json(nullptr);
}

void AddTime(const char* key, bool present,
             const google::protobuf::Timestamp& time, Json* json) {
  if (present) (*json)[key] = FormatTimestamp(time);
}

Json SuggestionToJson(const v1::Suggestion& suggestion) {
  Json json = Json::object();
  json["source"] = v1::Trial::Source_Name(suggestion.source());
  json["model_version"] = suggestion.model_version();
  json["searcher"] = suggestion.searcher();
  if (suggestion.has_acquisition()) {
    json["acquisition"] = NumberToJson(suggestion.acquisition());
  }
  if (suggestion.has_prediction()) {
    json["prediction"] = PredictionToJson(suggestion.prediction());
  }
  json["seed"] = suggestion.seed();
  return json;
}

}  // namespace

Json ValueToJson(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return Json(value.int64_value());
    case v1::Value::kDoubleValue:
      return NumberToJson(value.double_value());
    case v1::Value::kStringValue:
      return Json(value.string_value());
    case v1::Value::kBoolValue:
      return Json(value.bool_value());
    case v1::Value::kListValue: {
      Json list = Json::array();
      for (const v1::Value& element : value.list_value().values()) {
        list.push_back(ValueToJson(element));
      }
      return list;
    }
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return Json(nullptr);
}

absl::StatusOr<v1::Value> ValueFromJson(const Json& json) {
  if (json.is_boolean()) return MakeValue(json.get<bool>());
  if (json.is_string()) return MakeValue(json.get<std::string>());
  if (json.is_number_float()) return MakeValue(json.get<double>());
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return absl::InvalidArgumentError("does not fit 64 bits");
  }
  if (json.is_number_integer()) return MakeValue(json.get<int64_t>());
  if (json.is_array()) {
    v1::Value list;
    list.mutable_list_value();
    for (const Json& element : json) {
      CUBICML_ASSIGN_OR_RETURN(*list.mutable_list_value()->add_values(),
                               ValueFromJson(element));
    }
    return list;
  }
  return absl::InvalidArgumentError("is not a value");
}

Json ValuesToJson(const ValueMap& values) {
  const std::map<std::string, v1::Value> sorted(values.begin(), values.end());
  Json json = Json::object();
  for (const auto& [name, value] : sorted) json[name] = ValueToJson(value);
  return json;
}

Json MetricsToJson(const google::protobuf::Map<std::string, double>& metrics) {
  const std::map<std::string, double> sorted(metrics.begin(), metrics.end());
  Json json = Json::object();
  for (const auto& [name, value] : sorted) json[name] = NumberToJson(value);
  return json;
}

Json PredictionToJson(const v1::Prediction& prediction) {
  Json metrics = Json::object();
  const std::map<std::string, v1::Prediction::MetricPrediction> sorted(
      prediction.metrics().begin(), prediction.metrics().end());
  for (const auto& [name, metric] : sorted) {
    metrics[name] = {
        {"mean", NumberToJson(metric.mean())},
        {"standard_deviation", NumberToJson(metric.standard_deviation())},
        {"lower90", NumberToJson(metric.lower90())},
        {"upper90", NumberToJson(metric.upper90())}};
  }
  return {
      {"metrics", metrics},
      {"feasible_probability", NumberToJson(prediction.feasible_probability())},
      {"score", NumberToJson(prediction.score())}};
}

Json SurrogateToJson(const v1::SurrogateQuality& quality) {
  Json json = {{"model_version", quality.model_version()},
               {"kind", quality.kind()},
               {"rows", quality.rows()}};
  if (quality.has_kendall_tau()) {
    json["kendall_tau"] = NumberToJson(quality.kendall_tau());
  }
  if (quality.has_coverage90()) {
    json["coverage90"] = NumberToJson(quality.coverage90());
  }
  if (quality.has_feasibility_auc()) {
    json["feasibility_auc"] = NumberToJson(quality.feasibility_auc());
  }
  if (quality.has_training_time()) {
    json["training_time_s"] =
        absl::ToDoubleSeconds(ToDuration(quality.training_time()));
  }
  AddTime("create_time", quality.has_create_time(), quality.create_time(),
          &json);
  return json;
}

Json ProgressToJson(const v1::StudyProgress& progress) {
  Json json = {{"trials", progress.trials()},
               {"active_trials", progress.active_trials()},
               {"succeeded_trials", progress.succeeded_trials()},
               {"infeasible_trials", progress.infeasible_trials()}};
  if (progress.has_baseline_objective()) {
    json["baseline_objective"] = NumberToJson(progress.baseline_objective());
  }
  if (progress.has_best_objective()) {
    json["best_objective"] = NumberToJson(progress.best_objective());
  }
  if (!progress.best_trial().empty()) {
    json["best_trial"] = progress.best_trial();
  }
  if (progress.has_speedup()) {
    json["speedup"] = NumberToJson(progress.speedup());
  }
  if (progress.has_surrogate()) {
    json["surrogate"] = SurrogateToJson(progress.surrogate());
  }
  return json;
}

Json TrialToJson(const v1::Trial& trial) {
  Json json = {{"name", trial.name()},
               {"state", v1::Trial::State_Name(trial.state())},
               {"parameters", ValuesToJson(trial.parameters())},
               {"context", ValuesToJson(trial.context())},
               {"metrics", MetricsToJson(trial.metrics())}};
  if (trial.reason() != v1::Trial::REASON_UNSPECIFIED) {
    json["reason"] = v1::Trial::Reason_Name(trial.reason());
  }
  if (!trial.reason_detail().empty()) {
    json["reason_detail"] = trial.reason_detail();
  }
  if (trial.late()) json["late"] = true;
  json["client_id"] = trial.client_id();
  json["attempt"] = trial.attempt();
  AddTime("lease_expire_time", trial.has_lease_expire_time(),
          trial.lease_expire_time(), &json);
  AddTime("create_time", trial.has_create_time(), trial.create_time(), &json);
  AddTime("update_time", trial.has_update_time(), trial.update_time(), &json);
  AddTime("end_time", trial.has_end_time(), trial.end_time(), &json);
  if (trial.has_suggestion()) {
    json["suggestion"] = SuggestionToJson(trial.suggestion());
  }
  if (trial.has_intermediate()) {
    const v1::IntermediateMeasurement& last = trial.intermediate();
    json["intermediate"] = {{"step", last.step()},
                            {"metrics", MetricsToJson(last.metrics())}};
    AddTime("time", last.has_time(), last.time(), &json["intermediate"]);
  }
  if (trial.labels_size() > 0) {
    const std::map<std::string, std::string> labels(trial.labels().begin(),
                                                    trial.labels().end());
    json["labels"] = labels;
  }
  return json;
}

std::string FormatTimestamp(const google::protobuf::Timestamp& time) {
  return absl::FormatTime(
      "%Y-%m-%dT%H:%M:%E*SZ",
      absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
      absl::UTCTimeZone());
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace cubicml
