// SPDX-License-Identifier: Apache-2.0

#include "client/cli/yaml_node.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"
#include "client/cli/scalar.h"
#include "cubicml/client/values.h"

namespace cubicml {

YamlNode::YamlNode(YAML::Node node, std::string path, int line,
                   std::shared_ptr<const std::string> file_name)
    : node_(std::move(node)),
      path_(std::move(path)),
      line_(line),
      file_name_(std::move(file_name)) {}

absl::StatusOr<YamlNode> YamlNode::Parse(absl::string_view text,
                                         absl::string_view file_name) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          file_name, ": has ", documents.size(), " documents instead of one"));
    }
    return YamlNode(documents[0], "", documents[0].Mark().line + 1,
                    std::make_shared<const std::string>(file_name));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_name, ":", error.mark.line + 1, ": not YAML: ", error.msg));
  }
}

absl::Status YamlNode::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(*file_name_, ":", line_, ": ", path_,
                   path_.empty() ? "" : ": ", message));
}

absl::Status YamlNode::CheckMap(
    std::span<const absl::string_view> known) const {
  if (!node_.IsMap()) return Error("must be a map of keys and values");
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) return Error("has a key that is not a word");
    const std::string& key = entry.first.Scalar();
    const YamlNode at(entry.first, path_, entry.first.Mark().line + 1,
                      file_name_);
    if (!seen.insert(key).second) {
      return at.Error(absl::StrCat("has the key '", key, "' twice"));
    }
    bool is_known = false;
    for (const absl::string_view name : known) is_known |= name == key;
    if (!is_known) {
      return at.Error(
          absl::StrCat("unknown key '", key, "'", SuggestName(key, known)));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> YamlNode::Keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : node_) keys.push_back(entry.first.Scalar());
  return keys;
}

std::optional<YamlNode> YamlNode::Find(absl::string_view key) const {
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != key) continue;
    return YamlNode(
        entry.second,
        path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key),
        entry.first.Mark().line + 1, file_name_);
  }
  return std::nullopt;
}

absl::StatusOr<YamlNode> YamlNode::Get(absl::string_view key) const {
  std::optional<YamlNode> found = Find(key);
  if (!found.has_value()) return Error(absl::StrCat("needs '", key, "'"));
  return *std::move(found);
}

absl::StatusOr<std::vector<YamlNode>> YamlNode::Elements() const {
  if (!node_.IsSequence()) return Error("must be a list");
  std::vector<YamlNode> elements;
  for (const YAML::Node& element : node_) {
    elements.push_back(YamlNode(element,
                                absl::StrCat(path_, "[", elements.size(), "]"),
                                element.Mark().line + 1, file_name_));
  }
  return elements;
}

absl::StatusOr<v1::Value> YamlNode::Scalar() const {
  if (!node_.IsScalar()) {
    return Error(node_.IsNull() ? "has no value"
                                : "must be one value, not a list or a map");
  }
  // yaml-cpp marks quoted scalars with the tag "!".
  if (node_.Tag() == "!" || node_.Tag() == "tag:yaml.org,2002:str") {
    return MakeValue(node_.Scalar());
  }
  absl::StatusOr<v1::Value> value = ResolveScalar(node_.Scalar());
  if (!value.ok()) return Error(value.status().message());
  if (value->kind_case() == v1::Value::KIND_NOT_SET) {
    return Error("has no value");
  }
  return value;
}

absl::StatusOr<std::string> YamlNode::Text() const {
  // As written, so that an integer beyond 64 bits is text, too.
  const absl::StatusOr<v1::Value> value = Scalar();
  const bool readable =
      value.ok() || (node_.IsScalar() && !ResolveScalar(node_.Scalar()).ok());
  if (!readable) return value.status();
  return node_.Scalar();
}

absl::StatusOr<int64_t> YamlNode::Integer() const {
  CUBICML_ASSIGN_OR_RETURN(const v1::Value value, Scalar());
  if (value.kind_case() == v1::Value::kInt64Value) return value.int64_value();
  return Error(absl::StrCat("'", node_.Scalar(), "' is not an integer"));
}

absl::StatusOr<double> YamlNode::Number() const {
  CUBICML_ASSIGN_OR_RETURN(const v1::Value value, Scalar());
  const absl::StatusOr<double> number = ValueAs<double>(value);
  if (number.ok()) return number;
  return Error(absl::StrCat("'", node_.Scalar(), "' is not a number"));
}

absl::StatusOr<bool> YamlNode::Truth() const {
  CUBICML_ASSIGN_OR_RETURN(const v1::Value value, Scalar());
  if (value.kind_case() == v1::Value::kBoolValue) return value.bool_value();
  return Error(
      absl::StrCat("'", node_.Scalar(), "' is neither true nor false"));
}

}  // namespace cubicml
