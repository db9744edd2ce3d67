// SPDX-License-Identifier: Apache-2.0

#include "client/cli/study_file_parameters.h"

#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"
#include "cubicml/client/values.h"

namespace cubicml {
namespace {

constexpr absl::string_view kParameterKeys[] = {
    "name",  "type",   "values",    "min",         "max",  "step",
    "scale", "repeat", "active_if", "description", "unit", "default"};
constexpr absl::string_view kContextKeys[] = {
    "name", "type", "default", "optional", "description", "unit"};
enum DomainType { kInteger, kNumber, kCategory };
constexpr std::pair<absl::string_view, int> kDomainTypes[] = {
    {"integer", kInteger}, {"number", kNumber}, {"category", kCategory}};
constexpr std::pair<absl::string_view, int> kContextTypes[] = {
    {"integer", v1::INTEGER},
    {"number", v1::NUMBER},
    {"string", v1::STRING},
    {"boolean", v1::BOOLEAN}};
constexpr std::pair<absl::string_view, int> kScales[] = {
    {"linear", v1::SCALE_LINEAR}, {"log", v1::SCALE_LOG}};

absl::Status RefuseKeys(const YamlNode& node, absl::string_view why,
                        std::initializer_list<absl::string_view> keys) {
  for (const absl::string_view key : keys) {
    if (const auto found = node.Find(key); found.has_value()) {
      return found->Error(why);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Scale> ReadScale(const YamlNode& node) {
  const auto scale = node.Find("scale");
  if (!scale.has_value()) return v1::SCALE_UNSPECIFIED;
  CUBICML_ASSIGN_OR_RETURN(const int number, ReadWord(*scale, kScales));
  return static_cast<v1::Scale>(number);
}

absl::Status ReadInteger(const YamlNode& node, v1::IntegerDomain* domain) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Scale scale, ReadScale(node));
  domain->set_scale(scale);
  if (const auto values = node.Find("values"); values.has_value()) {
    CUBICML_RETURN_IF_ERROR(RefuseKeys(
        node, "does not go together with 'values'", {"min", "max", "step"}));
    CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> elements,
                             values->Elements());
    if (elements.empty()) return values->Error("must not be empty");
    for (const YamlNode& element : elements) {
      CUBICML_ASSIGN_OR_RETURN(const int64_t value, element.Integer());
      domain->add_values(value);
    }
    return absl::OkStatus();
  }
  if (!node.Find("min").has_value() && !node.Find("max").has_value()) {
    return node.Error("needs 'min' and 'max', or 'values'");
  }
  CUBICML_ASSIGN_OR_RETURN(const YamlNode min, node.Get("min"));
  CUBICML_ASSIGN_OR_RETURN(const int64_t lowest, min.Integer());
  CUBICML_ASSIGN_OR_RETURN(const YamlNode max, node.Get("max"));
  CUBICML_ASSIGN_OR_RETURN(const int64_t highest, max.Integer());
  domain->set_min(lowest);
  domain->set_max(highest);
  if (const auto step = node.Find("step"); step.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const int64_t distance, step->Integer());
    domain->set_step(distance);
  }
  return absl::OkStatus();
}

absl::Status ReadNumber(const YamlNode& node, v1::NumberDomain* domain) {
  CUBICML_RETURN_IF_ERROR(RefuseKeys(
      node, "belongs to integers and categories; a number has min and max",
      {"values"}));
  CUBICML_ASSIGN_OR_RETURN(const v1::Scale scale, ReadScale(node));
  domain->set_scale(scale);
  CUBICML_ASSIGN_OR_RETURN(const YamlNode min, node.Get("min"));
  CUBICML_ASSIGN_OR_RETURN(const double lowest, min.Number());
  CUBICML_ASSIGN_OR_RETURN(const YamlNode max, node.Get("max"));
  CUBICML_ASSIGN_OR_RETURN(const double highest, max.Number());
  domain->set_min(lowest);
  domain->set_max(highest);
  if (const auto step = node.Find("step"); step.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const double distance, step->Number());
    domain->set_step(distance);
  }
  return absl::OkStatus();
}

bool AreAllNumbers(const v1::CategoryDomain& domain) {
  bool all = true;
  for (const v1::Value& value : domain.values()) {
    all &= value.has_int64_value() || value.has_double_value();
  }
  return all;
}

absl::Status ReadCategory(const YamlNode& node, v1::CategoryDomain* domain) {
  CUBICML_RETURN_IF_ERROR(
      RefuseKeys(node, "belongs to integers and numbers; a category has values",
                 {"min", "max", "step", "scale"}));
  CUBICML_ASSIGN_OR_RETURN(const YamlNode values, node.Get("values"));
  CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> elements,
                           values.Elements());
  if (elements.empty()) return values.Error("must not be empty");
  bool mixed = false;
  for (const YamlNode& element : elements) {
    CUBICML_ASSIGN_OR_RETURN(v1::Value value, element.Scalar());
    *domain->add_values() = std::move(value);
    mixed |= domain->values(0).kind_case() !=
             domain->values(domain->values_size() - 1).kind_case();
  }
  if (!mixed) return absl::OkStatus();
  if (!AreAllNumbers(*domain)) {
    return values.Error(
        "must be of one type; quote words that are to be strings, such as "
        "\"true\" or \"1\"");
  }
  for (v1::Value& value : *domain->mutable_values()) value = AsNumber(value);
  return absl::OkStatus();
}

absl::Status ReadDomain(const YamlNode& node, v1::Parameter* parameter) {
  CUBICML_ASSIGN_OR_RETURN(const YamlNode type, node.Get("type"));
  CUBICML_ASSIGN_OR_RETURN(const int domain, ReadWord(type, kDomainTypes));
  switch (domain) {
    case kInteger:
      return ReadInteger(node, parameter->mutable_integer());
    case kNumber:
      return ReadNumber(node, parameter->mutable_number());
    default:
      return ReadCategory(node, parameter->mutable_category());
  }
}

bool IsRealValued(const v1::Parameter& parameter) {
  if (parameter.has_number()) return true;
  return parameter.has_category() && parameter.category().values_size() > 0 &&
         parameter.category().values(0).has_double_value();
}

absl::StatusOr<v1::Value> ReadDefault(const YamlNode& node,
                                      const v1::Parameter& parameter) {
  const bool real = IsRealValued(parameter);
  if (!node.IsList()) {
    CUBICML_ASSIGN_OR_RETURN(v1::Value value, node.Scalar());
    return real ? AsNumber(value) : value;
  }
  if (parameter.repeat() == 0) {
    return node.Error("is a list, which needs 'repeat'");
  }
  CUBICML_ASSIGN_OR_RETURN(const std::vector<YamlNode> elements,
                           node.Elements());
  if (elements.size() != static_cast<size_t>(parameter.repeat())) {
    return node.Error(absl::StrCat("has ", elements.size(),
                                   " values, repeat is ", parameter.repeat()));
  }
  v1::Value list;
  for (const YamlNode& element : elements) {
    CUBICML_ASSIGN_OR_RETURN(v1::Value value, element.Scalar());
    *list.mutable_list_value()->add_values() = real ? AsNumber(value) : value;
  }
  return list;
}

}  // namespace

absl::Status ReadText(const YamlNode& map, absl::string_view key,
                      Presence presence, std::string* text) {
  const auto node = map.Find(key);
  if (!node.has_value()) {
    if (presence == kOptional) return absl::OkStatus();
    return map.Error(absl::StrCat("needs '", key, "'"));
  }
  CUBICML_ASSIGN_OR_RETURN(*text, node->Text());
  return absl::OkStatus();
}

absl::StatusOr<int32_t> ReadInt32(const YamlNode& node) {
  CUBICML_ASSIGN_OR_RETURN(const int64_t number, node.Integer());
  if (number < 0 || number > std::numeric_limits<int32_t>::max()) {
    return node.Error(absl::StrCat(number, " is out of range"));
  }
  return static_cast<int32_t>(number);
}

absl::StatusOr<int> ReadWord(
    const YamlNode& node,
    std::span<const std::pair<absl::string_view, int>> words) {
  CUBICML_ASSIGN_OR_RETURN(const std::string text, node.Text());
  std::vector<absl::string_view> names;
  for (const auto& [word, number] : words) {
    if (word == text) return number;
    names.push_back(word);
  }
  return node.Error(
      absl::StrCat("'", text, "' is unknown", SuggestName(text, names)));
}

v1::Value AsNumber(const v1::Value& value) {
  if (!value.has_int64_value()) return value;
  return MakeValue(static_cast<double>(value.int64_value()));
}

bool IsNumberColumn(const v1::Study& study, absl::string_view name) {
  for (const v1::Parameter& parameter : study.parameters()) {
    if (parameter.name() == name) return IsRealValued(parameter);
  }
  for (const v1::ContextField& field : study.context()) {
    if (field.name() == name) return field.type() == v1::NUMBER;
  }
  return false;
}

absl::Status ReadParameter(const YamlNode& node, v1::Parameter* parameter) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kParameterKeys));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "name", kRequired, parameter->mutable_name()));
  CUBICML_RETURN_IF_ERROR(ReadDomain(node, parameter));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "active_if", kOptional, parameter->mutable_active_if()));
  CUBICML_RETURN_IF_ERROR(ReadText(node, "description", kOptional,
                                   parameter->mutable_description()));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "unit", kOptional, parameter->mutable_unit()));
  if (const auto repeat = node.Find("repeat"); repeat.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const int32_t count, ReadInt32(*repeat));
    if (count < 1) return repeat->Error("must be at least 1");
    parameter->set_repeat(count);
  }
  if (const auto value = node.Find("default"); value.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(*parameter->mutable_default_value(),
                             ReadDefault(*value, *parameter));
  }
  return absl::OkStatus();
}

absl::Status ReadContextField(const YamlNode& node, v1::ContextField* field) {
  CUBICML_RETURN_IF_ERROR(node.CheckMap(kContextKeys));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "name", kRequired, field->mutable_name()));
  CUBICML_ASSIGN_OR_RETURN(const YamlNode type, node.Get("type"));
  CUBICML_ASSIGN_OR_RETURN(const int number, ReadWord(type, kContextTypes));
  field->set_type(static_cast<v1::ValueType>(number));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "description", kOptional, field->mutable_description()));
  CUBICML_RETURN_IF_ERROR(
      ReadText(node, "unit", kOptional, field->mutable_unit()));
  if (const auto optional = node.Find("optional"); optional.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(const bool truth, optional->Truth());
    field->set_optional(truth);
  }
  if (const auto value = node.Find("default"); value.has_value()) {
    CUBICML_ASSIGN_OR_RETURN(v1::Value given, value->Scalar());
    *field->mutable_default_value() =
        field->type() == v1::NUMBER ? AsNumber(given) : given;
  }
  return absl::OkStatus();
}

}  // namespace cubicml
