// SPDX-License-Identifier: Apache-2.0

#include "client/replay/table_spec.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "client/replay/csv_file.h"

namespace cubicml {
namespace {

using nlohmann::json;

// One table's entry, whose errors name the file, the table and the key.
class Entry {
 public:
  Entry(absl::string_view where, const json& value)
      : where_(where), value_(value) {}

  absl::Status Error(absl::string_view key, absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ".", key, ": ", message));
  }

  // "" when it is not there, or null.
  absl::StatusOr<std::string> OptionalText(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end() || found->is_null()) return "";
    if (!found->is_string()) return Error(key, "must be a string");
    return found->get<std::string>();
  }

  absl::StatusOr<std::string> Text(const char* key) const {
    CUBICML_ASSIGN_OR_RETURN(std::string text, OptionalText(key));
    if (text.empty()) return Error(key, "is missing");
    return text;
  }

  absl::StatusOr<std::vector<std::string>> Texts(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) return std::vector<std::string>();
    if (!found->is_array()) return Error(key, "must be a list of strings");
    std::vector<std::string> texts;
    for (const json& item : *found) {
      if (!item.is_string()) return Error(key, "must be a list of strings");
      texts.push_back(item.get<std::string>());
    }
    return texts;
  }

 private:
  const absl::string_view where_;
  const json& value_;
};

absl::StatusOr<TableSpec> ParseSpec(const std::string& index_path,
                                    const std::string& name,
                                    const json& value) {
  const std::string where = absl::StrCat(index_path, ": ", name);
  if (!value.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": not an object"));
  }
  const Entry entry(where, value);
  TableSpec spec;
  spec.name = name;
  CUBICML_ASSIGN_OR_RETURN(const std::string file, entry.Text("file"));
  spec.path = (std::filesystem::path(index_path).parent_path() / file).string();
  CUBICML_ASSIGN_OR_RETURN(spec.params, entry.Texts("params"));
  CUBICML_ASSIGN_OR_RETURN(spec.context, entry.Texts("context"));
  CUBICML_ASSIGN_OR_RETURN(spec.objective, entry.Text("objective"));
  CUBICML_ASSIGN_OR_RETURN(const std::string direction,
                           entry.Text("direction"));
  if (direction != "max" && direction != "min") {
    return entry.Error("direction", "must be \"max\" or \"min\"");
  }
  spec.maximize = direction == "max";
  CUBICML_ASSIGN_OR_RETURN(spec.status, entry.OptionalText("status"));
  CUBICML_ASSIGN_OR_RETURN(const std::string ok,
                           entry.OptionalText("ok_value"));
  if (!ok.empty()) spec.ok_value = ok;
  return spec;
}

}  // namespace

absl::StatusOr<std::vector<TableSpec>> ReadTableIndex(
    const std::string& path, const std::vector<std::string>& names) {
  CUBICML_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const json index = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a JSON object from name to table"));
  }
  std::vector<std::string> wanted = names;
  if (wanted.empty()) {
    for (const auto& [name, value] : index.items()) wanted.push_back(name);
  }
  std::vector<TableSpec> specs;
  for (const std::string& name : wanted) {
    const auto found = index.find(name);
    if (found == index.end()) {
      return absl::NotFoundError(
          absl::StrCat(path, ": there is no table '", name, "'"));
    }
    CUBICML_ASSIGN_OR_RETURN(TableSpec spec, ParseSpec(path, name, *found));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace cubicml
