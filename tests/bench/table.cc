// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "predictor/featurizer.h"

namespace cubicml::bench {
namespace {

using Json = nlohmann::json;

struct Csv {
  std::map<std::string, size_t> columns;
  std::vector<std::vector<std::string>> rows;

  const std::string& at(size_t row, const std::string& column) const {
    return rows[row][columns.at(column)];
  }
};

std::vector<std::string> SplitLine(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

Csv ReadCsv(const std::string& path) {
  std::ifstream file(path);
  Csv csv;
  std::string line;
  std::getline(file, line);
  for (const std::string& name : SplitLine(line)) {
    csv.columns.emplace(name, csv.columns.size());
  }
  while (std::getline(file, line)) {
    std::vector<std::string> row = SplitLine(line);
    if (row.size() == csv.columns.size()) csv.rows.push_back(std::move(row));
  }
  return csv;
}

bool IsNumber(const std::string& text) {
  double value;
  return absl::SimpleAtod(text, &value) && std::isfinite(value);
}

bool IsInteger(const std::string& text) {
  int64_t value;
  return absl::SimpleAtoi(text, &value);
}

// What all non-empty values of a column are.
v1::ValueType TypeOf(const Csv& csv, const std::string& column) {
  bool number = true;
  bool integer = true;
  for (size_t i = 0; i < csv.rows.size(); ++i) {
    const std::string& text = csv.at(i, column);
    number = number && IsNumber(text);
    integer = integer && IsInteger(text);
  }
  if (integer) return v1::INTEGER;
  return number ? v1::NUMBER : v1::STRING;
}

v1::Value MakeValue(const std::string& text, v1::ValueType type) {
  v1::Value value;
  if (type == v1::INTEGER) {
    int64_t number = 0;
    (void)absl::SimpleAtoi(text, &number);
    value.set_int64_value(number);
  } else if (type == v1::NUMBER) {
    double number = 0.0;
    (void)absl::SimpleAtod(text, &number);
    value.set_double_value(number);
  } else {
    value.set_string_value(text);
  }
  return value;
}

// A parameter whose domain is the values that occur.
void AddParameter(const Csv& csv, const std::string& column, v1::Study* study) {
  const v1::ValueType type = TypeOf(csv, column);
  std::set<std::string> texts;
  for (size_t i = 0; i < csv.rows.size(); ++i) texts.insert(csv.at(i, column));
  v1::Parameter* parameter = study->add_parameters();
  parameter->set_name(column);
  if (type == v1::INTEGER) {
    std::set<int64_t> values;
    for (const std::string& text : texts) {
      values.insert(MakeValue(text, type).int64_value());
    }
    parameter->mutable_integer()->mutable_values()->Add(values.begin(),
                                                        values.end());
    return;
  }
  for (const std::string& text : texts) {
    *parameter->mutable_category()->add_values() = MakeValue(text, type);
  }
}

absl::StatusOr<Table> MakeTable(const std::string& name, const Json& index,
                                const Csv& csv) {
  const std::string objective = index.at("objective");
  std::vector<std::string> context = index.at("context");
  v1::Study study;
  study.set_name(absl::StrCat("studies/", "table"));
  std::vector<std::string> parameters;
  for (const std::string column : index.at("params")) {
    if (std::find(context.begin(), context.end(), column) != context.end()) {
      continue;
    }
    parameters.push_back(column);
    AddParameter(csv, column, &study);
  }
  for (const std::string& column : context) {
    v1::ContextField* field = study.add_context();
    field->set_name(column);
    field->set_type(TypeOf(csv, column));
  }
  Table table;
  table.name = name;
  table.maximize = index.at("direction") == "max";
  CUBICML_ASSIGN_OR_RETURN(table.space, SearchSpace::Parse(study));
  const Featurizer featurizer(table.space);
  std::map<std::string, v1::ValueType> types;
  for (const auto& parameter : study.parameters()) {
    types[parameter.name()] = TypeOf(csv, parameter.name());
  }
  std::map<std::string, int> groups;
  for (size_t i = 0; i < csv.rows.size(); ++i) {
    ValueMap values;
    for (const auto& [parameter, type] : types) {
      values[parameter] = MakeValue(csv.at(i, parameter), type);
    }
    ValueMap context_values;
    for (const auto& field : study.context()) {
      context_values[field.name()] =
          MakeValue(csv.at(i, field.name()), field.type());
    }
    CUBICML_ASSIGN_OR_RETURN(Context parsed,
                             table.space->ParseContext(context_values));
    CUBICML_ASSIGN_OR_RETURN(Point point,
                             table.space->ParsePoint(values, parsed));
    DatasetRow row;
    row.group = groups.emplace(parsed.key, static_cast<int>(groups.size()))
                    .first->second;
    const bool ok =
        index.at("status").is_null() || csv.at(i, index.at("status")) == "ok";
    double value = 0.0;
    row.feasible = ok && absl::SimpleAtod(csv.at(i, objective), &value) &&
                   std::isfinite(value) && value > 0.0;
    if (row.feasible) row.metrics = {value};
    featurizer.Append(point, parsed, &table.features);
    table.points.push_back(std::move(point));
    table.contexts.push_back(std::move(parsed));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

absl::StatusOr<std::vector<Table>> LoadTables(const std::string& folder,
                                              const std::string& filter) {
  std::ifstream file(folder + "/INDEX.json");
  const Json index = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object()) {
    return absl::NotFoundError(absl::StrCat("no INDEX.json in ", folder));
  }
  std::vector<Table> tables;
  for (const auto& [name, entry] : index.items()) {
    if (name.find(filter) == std::string::npos) continue;
    const std::string path = entry.at("file");
    CUBICML_ASSIGN_OR_RETURN(
        Table table, MakeTable(name, entry, ReadCsv(folder + "/" + path)));
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<Table> SplitContexts(const Table& table, size_t min_rows,
                                 size_t limit) {
  std::map<int, std::vector<size_t>> groups;
  std::map<int, size_t> measured;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    groups[table.rows[i].group].push_back(i);
    if (table.rows[i].feasible) ++measured[table.rows[i].group];
  }
  std::vector<int> order;
  for (const auto& [group, rows] : groups) {
    if (measured[group] >= min_rows) order.push_back(group);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return groups[a].size() > groups[b].size();
  });
  if (order.size() > limit) order.resize(limit);
  std::vector<Table> parts;
  for (const int group : order) {
    Table part;
    part.name =
        order.size() > 1 ? absl::StrCat(table.name, "/", group) : table.name;
    part.maximize = table.maximize;
    part.space = table.space;
    part.features.columns = table.features.columns;
    for (const size_t i : groups[group]) {
      const float* row = table.features.row(i);
      part.features.values.insert(part.features.values.end(), row,
                                  row + table.features.columns);
      ++part.features.rows;
      part.points.push_back(table.points[i]);
      part.contexts.push_back(table.contexts[i]);
      part.rows.push_back(table.rows[i]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace cubicml::bench
