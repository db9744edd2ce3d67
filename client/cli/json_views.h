// SPDX-License-Identifier: Apache-2.0
//
// Messages as the JSON that scripts read: the names of the proto, values
// without their type's name, enums as words, times as RFC 3339.

#ifndef CUBICML_CLIENT_CLI_JSON_VIEWS_H_
#define CUBICML_CLIENT_CLI_JSON_VIEWS_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

using Json = nlohmann::ordered_json;

// null for a value without a kind, and for a number that is not finite.
Json ValueToJson(const v1::Value& value);
// INVALID_ARGUMENT for null, objects, and integers beyond 64 bits.
absl::StatusOr<v1::Value> ValueFromJson(const Json& json);

// Names in alphabetical order.
Json ValuesToJson(const ValueMap& values);
Json MetricsToJson(const google::protobuf::Map<std::string, double>& metrics);

Json PredictionToJson(const v1::Prediction& prediction);
Json SurrogateToJson(const v1::SurrogateQuality& quality);
Json ProgressToJson(const v1::StudyProgress& progress);
Json TrialToJson(const v1::Trial& trial);

std::string FormatTimestamp(const google::protobuf::Timestamp& time);
absl::Duration ToDuration(const google::protobuf::Duration& duration);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_JSON_VIEWS_H_
