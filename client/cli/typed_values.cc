// SPDX-License-Identifier: Apache-2.0

#include "client/cli/typed_values.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"
#include "client/cli/json_views.h"
#include "client/cli/scalar.h"

namespace cubicml {
namespace {

// The elements of "a,b" or ["a", "b"].
absl::StatusOr<std::vector<std::string>> SplitVector(absl::string_view text) {
  if (!absl::StartsWith(text, "[")) {
    return std::vector<std::string>(absl::StrSplit(text, ','));
  }
  const Json json = Json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a JSON array"));
  }
  std::vector<std::string> elements;
  for (const Json& element : json) {
    elements.push_back(element.is_string() ? element.get<std::string>()
                                           : element.dump());
  }
  return elements;
}

// `parse(text)` types each value; `names` are the declared ones.
template <typename Parse>
absl::StatusOr<Values> ParseAssignments(
    std::span<const std::string> assignments,
    std::span<const absl::string_view> names, absl::string_view what,
    const Parse& parse) {
  Values values;
  for (const std::string& assignment : assignments) {
    CUBICML_ASSIGN_OR_RETURN(const auto split, SplitAssignment(assignment));
    const auto& [name, text] = split;
    size_t index = 0;
    while (index < names.size() && names[index] != name) ++index;
    if (index == names.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the study has no ", what,
                                                     " '", name, "'",
                                                     SuggestName(name, names)));
    }
    absl::StatusOr<v1::Value> value = parse(index, text);
    if (!value.ok()) return WithContext(value.status(), name);
    if (!values.emplace(name, *std::move(value)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " '", name, "' is given twice"));
    }
  }
  return values;
}

}  // namespace

absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(
    absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not NAME=VALUE"));
  }
  return std::pair(std::string(text.substr(0, equals)),
                   std::string(text.substr(equals + 1)));
}

v1::ValueType TypeOf(const v1::Parameter& parameter) {
  if (parameter.has_integer()) return v1::INTEGER;
  if (parameter.has_number()) return v1::NUMBER;
  if (parameter.category().values_size() == 0) return v1::STRING;
  switch (parameter.category().values(0).kind_case()) {
    case v1::Value::kInt64Value:
      return v1::INTEGER;
    case v1::Value::kDoubleValue:
      return v1::NUMBER;
    case v1::Value::kBoolValue:
      return v1::BOOLEAN;
    default:
      return v1::STRING;
  }
}

absl::StatusOr<v1::Value> ParseParameterValue(const v1::Parameter& parameter,
                                              absl::string_view text) {
  const v1::ValueType type = TypeOf(parameter);
  if (parameter.repeat() == 0) return ParseScalar(text, type);
  CUBICML_ASSIGN_OR_RETURN(std::vector<std::string> elements,
                           SplitVector(text));
  const size_t length = static_cast<size_t>(parameter.repeat());
  if (elements.size() == 1) elements.resize(length, elements[0]);
  if (elements.size() != length) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", elements.size(), " values instead of ", length));
  }
  v1::Value list;
  for (const std::string& element : elements) {
    CUBICML_ASSIGN_OR_RETURN(*list.mutable_list_value()->add_values(),
                             ParseScalar(element, type));
  }
  return list;
}

absl::StatusOr<Values> ParseContext(const v1::Study& study,
                                    std::span<const std::string> assignments) {
  std::vector<absl::string_view> names;
  for (const v1::ContextField& field : study.context()) {
    names.push_back(field.name());
  }
  return ParseAssignments(
      assignments, names, "context",
      [&](size_t index, const std::string& text) {
        return ParseScalar(text, study.context(static_cast<int>(index)).type());
      });
}

absl::StatusOr<Values> ParseParameters(
    const v1::Study& study, std::span<const std::string> assignments) {
  std::vector<absl::string_view> names;
  for (const v1::Parameter& parameter : study.parameters()) {
    names.push_back(parameter.name());
  }
  return ParseAssignments(assignments, names, "parameter",
                          [&](size_t index, const std::string& text) {
                            return ParseParameterValue(
                                study.parameters(static_cast<int>(index)),
                                text);
                          });
}

bool SameValues(const ValueMap& a, const ValueMap& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&b](const auto& entry) {
           const auto found = b.find(entry.first);
           return found != b.end() &&
                  google::protobuf::util::MessageDifferencer::Equals(
                      found->second, entry.second);
         });
}

std::vector<std::string> MetricNames(const v1::Study& study) {
  std::vector<std::string> names;
  for (const v1::Objective& objective : study.objectives()) {
    names.push_back(objective.metric().name());
  }
  for (const v1::Metric& metric : study.metrics()) {
    names.push_back(metric.name());
  }
  return names;
}

v1::Value DefaultOf(const v1::Parameter& parameter) {
  v1::Value element;
  if (parameter.has_default_value()) {
    element = parameter.default_value();
  } else if (parameter.has_integer()) {
    const v1::IntegerDomain& domain = parameter.integer();
    element =
        MakeValue(domain.values_size() > 0 ? domain.values(0) : domain.min());
  } else if (parameter.has_number()) {
    element = MakeValue(parameter.number().min());
  } else if (parameter.category().values_size() > 0) {
    element = parameter.category().values(0);
  }
  if (parameter.repeat() == 0 || element.has_list_value()) return element;
  v1::Value list;
  for (int i = 0; i < parameter.repeat(); ++i) {
    *list.mutable_list_value()->add_values() = element;
  }
  return list;
}

}  // namespace cubicml
