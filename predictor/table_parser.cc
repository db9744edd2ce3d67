// SPDX-License-Identifier: Apache-2.0

#include "predictor/table_parser.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

constexpr int kMaxTableRows = 100000;
constexpr size_t kMaxCells = 2000000;
constexpr int kColumnsInMessage = 8;

absl::Status CheckTableSize(const v1::TableConstraint& table,
                            const std::string& path, size_t* cells_of_study) {
  if (table.columns().empty()) {
    return FieldError(absl::StrCat(path, ".columns"),
                      "is empty; name the parameters that the rows are of");
  }
  if (table.rows().empty()) {
    return FieldError(absl::StrCat(path, ".rows"),
                      "is empty, so nothing would be valid");
  }
  if (table.rows_size() > kMaxTableRows) {
    return FieldError(absl::StrCat(path, ".rows"),
                      absl::StrCat("has ", table.rows_size(), " rows; at most ",
                                   kMaxTableRows, " are allowed"));
  }
  *cells_of_study += static_cast<size_t>(table.rows_size()) *
                     static_cast<size_t>(table.columns_size());
  if (*cells_of_study > kMaxCells) {
    return FieldError(path, absl::StrCat("brings the tables of the study to ",
                                         *cells_of_study, " values; at most ",
                                         kMaxCells, " are allowed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TableColumn> ParseColumn(const std::string& name,
                                        const SpaceModel& model,
                                        const std::string& path) {
  TableColumn column;
  if (const auto field = model.context_index.find(name);
      field != model.context_index.end()) {
    column.variable = {.is_context = true, .index = field->second};
    return column;
  }
  const auto parameter = model.parameter_index.find(name);
  if (parameter == model.parameter_index.end()) {
    return FieldError(path, absl::StrCat(QuoteForMessage(name),
                                         " is neither a parameter nor a "
                                         "context field of the study"));
  }
  if (model.parameters[parameter->second].is_vector) {
    return FieldError(path, absl::StrCat(QuoteForMessage(name),
                                         " is a vector; columns are scalars"));
  }
  column.variable = {.is_context = false, .index = parameter->second};
  column.knob = model.parameters[parameter->second].first_knob;
  return column;
}

bool MayBeAbsent(const TableColumn& column, const SpaceModel& model) {
  return column.variable.is_context
             ? model.context_fields[column.variable.index].optional()
             : model.knobs[column.knob].conditional;
}

// Replaces values by codes: their places among the different ones in order.
template <typename T>
void Encode(const std::vector<T>& values, const std::vector<bool>& present,
            std::vector<T>* dictionary, std::vector<int32_t>* codes) {
  for (size_t r = 0; r < values.size(); ++r) {
    if (present[r]) dictionary->push_back(values[r]);
  }
  std::sort(dictionary->begin(), dictionary->end());
  dictionary->erase(std::unique(dictionary->begin(), dictionary->end()),
                    dictionary->end());
  for (size_t r = 0; r < values.size(); ++r) {
    const auto found =
        std::lower_bound(dictionary->begin(), dictionary->end(), values[r]);
    codes->push_back(present[r]
                         ? static_cast<int32_t>(found - dictionary->begin())
                         : TableRows::kAbsent);
  }
}

void LinkLevels(const Domain& domain, TableColumn* column) {
  column->code_of_level.assign(domain.levels().size(), TableRows::kUnknown);
  for (size_t code = 0; code < column->numbers.size(); ++code) {
    const int32_t level = domain.FindLevel(column->numbers[code]);
    column->level_of_code.push_back(level);
    if (level >= 0) {
      column->code_of_level[static_cast<size_t>(level)] =
          static_cast<int32_t>(code);
    }
  }
}

// The codes of one column, by row.
absl::StatusOr<std::vector<int32_t>> ParseCells(
    const v1::TableConstraint& table, int at, const SpaceModel& model,
    const std::string& path, TableColumn* column) {
  std::vector<bool> present;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  const bool may_be_absent = MayBeAbsent(*column, model);
  const size_t index = column->variable.index;
  bool is_text = false;
  for (int r = 0; r < table.rows_size(); ++r) {
    const v1::Value& cell = table.rows(r).values(at);
    if (cell.kind_case() == v1::Value::KIND_NOT_SET && may_be_absent) {
      present.push_back(false);
      numbers.push_back(0.0);
      texts.emplace_back();
      continue;
    }
    const auto cell_path = [&] {
      return absl::StrCat(path, ".rows[", r, "].values[", at, "]");
    };
    present.push_back(true);
    if (!column->variable.is_context) {
      absl::StatusOr<double> value =
          model.parameters[index].domain.ParseValue(cell, "");
      if (!value.ok()) {  // again, with the path, which costs to make
        return model.parameters[index]
            .domain.ParseValue(cell, cell_path())
            .status();
      }
      numbers.push_back(*value);
      continue;
    }
    const v1::ContextField& field = model.context_fields[index];
    absl::StatusOr<Context::Field> value = ParseContextValue(field, cell, "");
    if (!value.ok())
      return ParseContextValue(field, cell, cell_path()).status();
    is_text = field.type() == v1::STRING;
    numbers.push_back(value->number);
    texts.push_back(std::move(value->text));
  }
  std::vector<int32_t> codes;
  if (is_text) {
    Encode(texts, present, &column->texts, &codes);
  } else {
    Encode(numbers, present, &column->numbers, &codes);
  }
  if (!column->variable.is_context) {
    LinkLevels(model.parameters[index].domain, column);
  }
  return codes;
}

}  // namespace

std::string DescribeTable(const v1::TableConstraint& table) {
  const int shown = std::min(table.columns_size(), kColumnsInMessage);
  return absl::StrCat("table of ",
                      absl::StrJoin(table.columns().begin(),
                                    table.columns().begin() + shown, ", "),
                      table.columns_size() > shown ? ", ..." : "");
}

absl::StatusOr<TableModel> ParseTable(const v1::TableConstraint& table,
                                      const SpaceModel& model,
                                      const std::string& path,
                                      size_t* cells_of_study) {
  CUBICML_RETURN_IF_ERROR(CheckTableSize(table, path, cells_of_study));
  for (int r = 0; r < table.rows_size(); ++r) {
    if (table.rows(r).values_size() == table.columns_size()) continue;
    return FieldError(
        absl::StrCat(path, ".rows[", r, "]"),
        absl::StrCat("has ", table.rows(r).values_size(), " values; there are ",
                     table.columns_size(), " columns"));
  }
  const auto width = static_cast<size_t>(table.columns_size());
  std::vector<TableColumn> columns;
  std::vector<std::vector<int32_t>> codes;
  std::set<std::string> names;
  for (int c = 0; c < table.columns_size(); ++c) {
    const std::string at = absl::StrCat(path, ".columns[", c, "]");
    if (!names.insert(table.columns(c)).second) {
      return FieldError(at, absl::StrCat(QuoteForMessage(table.columns(c)),
                                         " is a column already"));
    }
    CUBICML_ASSIGN_OR_RETURN(TableColumn column,
                             ParseColumn(table.columns(c), model, at));
    CUBICML_ASSIGN_OR_RETURN(std::vector<int32_t> column_codes,
                             ParseCells(table, c, model, path, &column));
    columns.push_back(std::move(column));
    codes.push_back(std::move(column_codes));
  }
  // Walks set the context first, then one knob after the other.
  std::vector<size_t> order(width);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const TableColumn& x = columns[a];
    const TableColumn& y = columns[b];
    return std::pair(!x.variable.is_context, x.knob) <
           std::pair(!y.variable.is_context, y.knob);
  });
  std::vector<int32_t> cells;
  cells.reserve(width * static_cast<size_t>(table.rows_size()));
  for (size_t r = 0; r < static_cast<size_t>(table.rows_size()); ++r) {
    for (const size_t c : order) cells.push_back(codes[c][r]);
  }
  TableModel model_of_table{
      .columns = {}, .context_columns = 0, .rows = TableRows(width, cells)};
  for (const size_t c : order) {
    if (columns[c].variable.is_context) ++model_of_table.context_columns;
    model_of_table.columns.push_back(std::move(columns[c]));
  }
  return model_of_table;
}

}  // namespace cubicml
