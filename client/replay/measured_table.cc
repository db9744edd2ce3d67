// SPDX-License-Identifier: Apache-2.0

#include "client/replay/measured_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "predictor/expression.h"

namespace cubicml {
namespace {

constexpr size_t kMaxNameBytes = 64;
// Integers beyond this are not exact as doubles, which points are made of.
constexpr int64_t kMaxInteger = int64_t{1} << 53;

bool IsBoolean(absl::string_view cell) {
  return absl::EqualsIgnoreCase(cell, "true") ||
         absl::EqualsIgnoreCase(cell, "false");
}

bool IsInteger(absl::string_view cell) {
  int64_t value = 0;
  return absl::SimpleAtoi(cell, &value) && value <= kMaxInteger &&
         value >= -kMaxInteger;
}

bool IsNumber(absl::string_view cell) {
  double value = 0.0;
  return absl::SimpleAtod(cell, &value) && std::isfinite(value);
}

// The narrowest type that every cell of the column has. An empty cell is a
// value like any other, so its column is one of strings.
ColumnType InferType(const CsvFile& file, size_t column) {
  const auto all = [&](bool (*predicate)(absl::string_view)) {
    return std::all_of(
        file.rows.begin(), file.rows.end(),
        [&](const CsvRow& row) { return predicate(row.cells[column]); });
  };
  if (all(IsBoolean)) return ColumnType::kBoolean;
  if (all(IsInteger)) return ColumnType::kInteger;
  if (all(IsNumber)) return ColumnType::kNumber;
  return ColumnType::kString;
}

// Turns headers into names that a study accepts.
class Names {
 public:
  static absl::StatusOr<Names> Create() {
    CUBICML_ASSIGN_OR_RETURN(ExpressionParser parser,
                             ExpressionParser::Create());
    return Names(std::move(parser));
  }

  // Different from all before.
  std::string Make(absl::string_view header);

 private:
  explicit Names(ExpressionParser parser) : parser_(std::move(parser)) {}

  ExpressionParser parser_;
  // In lower case: expressions do not tell them apart.
  std::set<std::string> used_ = {"objective"};
};

std::string Names::Make(absl::string_view header) {
  std::string name;
  for (const char c : header) {
    name.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c
                                                                      : '_');
  }
  if (name.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(name[0])))
    name.insert(0, "c_");
  name.resize(std::min(name.size(), kMaxNameBytes - 8));
  // A word of SQL, such as "order".
  if (!parser_.IsPlainName(name)) name.push_back('_');
  std::string unique = name;
  for (int i = 2; !used_.insert(absl::AsciiStrToLower(unique)).second; ++i) {
    unique = absl::StrCat(name, "_", i);
  }
  return unique;
}

struct Columns {
  std::vector<size_t> params;
  std::vector<size_t> context;
  size_t objective = 0;
  std::optional<size_t> status;
};

absl::StatusOr<Columns> FindColumns(const CsvFile& file,
                                    const TableSpec& spec) {
  Columns columns;
  std::set<std::string> taken;
  for (const std::string& header : spec.context) {
    CUBICML_ASSIGN_OR_RETURN(const size_t column, file.FindColumn(header));
    if (taken.insert(header).second) columns.context.push_back(column);
  }
  for (const std::string& header : spec.params) {
    CUBICML_ASSIGN_OR_RETURN(const size_t column, file.FindColumn(header));
    if (taken.insert(header).second) columns.params.push_back(column);
  }
  CUBICML_ASSIGN_OR_RETURN(columns.objective, file.FindColumn(spec.objective));
  if (taken.contains(spec.objective)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ":1: column '", spec.objective,
                     "': the objective cannot be a parameter or context"));
  }
  if (!spec.status.empty()) {
    CUBICML_ASSIGN_OR_RETURN(const size_t column, file.FindColumn(spec.status));
    columns.status = column;
  }
  if (columns.params.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": no column is a parameter"));
  }
  return columns;
}

// What the row measured; nullopt when it failed, with `status` saying how.
absl::StatusOr<std::optional<double>> ReadObjective(const CsvFile& file,
                                                    const TableSpec& spec,
                                                    const Columns& columns,
                                                    const CsvRow& row,
                                                    std::string* status) {
  const std::string& cell = row.cells[columns.objective];
  if (columns.status.has_value()) {
    *status = row.cells[*columns.status];
    if (*status != spec.ok_value) return std::optional<double>();
  } else if (cell.empty()) {
    *status = "failed";
    return std::optional<double>();
  }
  double value = 0.0;
  if (!absl::SimpleAtod(cell, &value) || !std::isfinite(value) || value <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name, ":", row.line, ": column '", spec.objective, "': '", cell,
        "' is not a positive number, which the objective of a row that did ",
        "not fail has to be"));
  }
  return std::optional<double>(value);
}

std::vector<std::string> Pick(const CsvRow& row,
                              const std::vector<size_t>& columns) {
  std::vector<std::string> cells;
  for (const size_t column : columns) cells.push_back(row.cells[column]);
  return cells;
}

void AppendKey(const std::vector<MeasuredColumn>& columns,
               const std::vector<std::string>& cells,
               std::vector<std::string>* key) {
  for (size_t i = 0; i < columns.size(); ++i) {
    key->push_back(ValueKey(ParseCell(columns[i], cells[i])));
  }
}

void FindBest(bool maximize, MeasuredProblem* problem) {
  for (const MeasuredConfiguration& one : problem->configurations) {
    if (!one.ok) continue;
    const bool better =
        problem->measured == 0 || (maximize ? one.objective > problem->best
                                            : one.objective < problem->best);
    if (better) problem->best = one.objective;
    ++problem->measured;
  }
}

}  // namespace

absl::StatusOr<MeasuredTable> BuildMeasuredTable(const CsvFile& file,
                                                 const TableSpec& spec) {
  CUBICML_ASSIGN_OR_RETURN(const Columns columns, FindColumns(file, spec));
  MeasuredTable table;
  table.spec = spec;
  CUBICML_ASSIGN_OR_RETURN(Names names, Names::Create());
  for (const size_t c : columns.params) {
    table.params.push_back(
        {file.header[c], names.Make(file.header[c]), InferType(file, c)});
  }
  for (const size_t c : columns.context) {
    table.context.push_back(
        {file.header[c], names.Make(file.header[c]), InferType(file, c)});
  }
  std::map<std::vector<std::string>, size_t> problem_at;
  std::map<std::vector<std::string>, size_t> configuration_at;
  for (const CsvRow& row : file.rows) {
    std::string status;
    CUBICML_ASSIGN_OR_RETURN(const std::optional<double> objective,
                             ReadObjective(file, spec, columns, row, &status));
    const std::vector<std::string> context = Pick(row, columns.context);
    std::vector<std::string> key;
    AppendKey(table.context, context, &key);
    const auto [problem_entry, new_problem] =
        problem_at.try_emplace(key, table.problems.size());
    if (new_problem) table.problems.push_back({context, {}, 0.0, 0});
    MeasuredProblem& problem = table.problems[problem_entry->second];
    const std::vector<std::string> values = Pick(row, columns.params);
    AppendKey(table.params, values, &key);
    const auto [entry, is_new] = configuration_at.try_emplace(
        std::move(key), problem.configurations.size());
    if (is_new) problem.configurations.push_back({values, false, 0.0, 0, ""});
    MeasuredConfiguration& one = problem.configurations[entry->second];
    if (objective.has_value()) {
      one.ok = true;
      ++one.measured_rows;
      one.objective += (*objective - one.objective) / one.measured_rows;
    } else if (one.status.empty()) {
      one.status = status;
    }
  }
  for (MeasuredProblem& problem : table.problems) {
    FindBest(spec.maximize, &problem);
  }
  return table;
}

std::string DescribeContext(const MeasuredTable& table,
                            const MeasuredProblem& problem) {
  std::string text;
  for (size_t i = 0; i < table.context.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? " " : "", table.context[i].header, "=",
                    problem.context[i]);
  }
  return text;
}

std::string ValueKey(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return absl::StrCat(value.int64_value());
    case v1::Value::kDoubleValue:
      return absl::StrFormat("%.17g", value.double_value());
    case v1::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    default:
      return value.string_value();
  }
}

v1::Value ParseCell(const MeasuredColumn& column, const std::string& cell) {
  v1::Value value;
  switch (column.type) {
    case ColumnType::kBoolean:
      value.set_bool_value(absl::EqualsIgnoreCase(cell, "true"));
      break;
    case ColumnType::kInteger: {
      int64_t number = 0;
      if (absl::SimpleAtoi(cell, &number)) value.set_int64_value(number);
      break;
    }
    case ColumnType::kNumber: {
      double number = 0.0;
      if (absl::SimpleAtod(cell, &number)) value.set_double_value(number);
      break;
    }
    case ColumnType::kString:
      value.set_string_value(cell);
      break;
  }
  return value;
}

}  // namespace cubicml
