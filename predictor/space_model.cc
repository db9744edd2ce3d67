// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

template <typename T>
int32_t FindIndex(const std::vector<T>& values, const T& value) {
  const auto found = std::lower_bound(values.begin(), values.end(), value);
  if (found == values.end() || *found != value) return TableRows::kUnknown;
  return static_cast<int32_t>(found - values.begin());
}

}  // namespace

int32_t TableColumn::FindCode(double number) const {
  return std::isnan(number) ? TableRows::kAbsent : FindIndex(numbers, number);
}

int32_t TableColumn::FindCode(const Context::Field& field) const {
  if (!field.present) return TableRows::kAbsent;
  return texts.empty() ? FindIndex(numbers, field.number)
                       : FindIndex(texts, field.text);
}

TableRows::Matches TableModel::NarrowByContext(const Context& context) const {
  TableRows::Matches matches = rows.All();
  TableRows::Matches next;
  for (size_t c = 0; c < context_columns; ++c) {
    const Context::Field& field = context.fields[columns[c].variable.index];
    if (!rows.Narrow(matches, c, columns[c].FindCode(field), &next)) return {};
    matches.swap(next);
  }
  return matches;
}

absl::StatusOr<Context::Field> ParseContextValue(const v1::ContextField& field,
                                                 const v1::Value& value,
                                                 absl::string_view path) {
  CUBICML_RETURN_IF_ERROR(CheckScalarValue(value, path));
  Context::Field result;
  result.present = true;
  const v1::Value::KindCase kind = value.kind_case();
  switch (field.type()) {
    case v1::INTEGER:
      if (kind != v1::Value::kInt64Value) break;
      result.number = static_cast<double>(value.int64_value());
      return result;
    case v1::NUMBER:
      if (kind == v1::Value::kInt64Value) {
        result.number = static_cast<double>(value.int64_value());
        return result;
      }
      if (kind != v1::Value::kDoubleValue) break;
      result.number = value.double_value() == 0.0 ? 0.0 : value.double_value();
      return result;
    case v1::BOOLEAN:
      if (kind != v1::Value::kBoolValue) break;
      result.number = value.bool_value() ? 1.0 : 0.0;
      return result;
    default:
      if (kind != v1::Value::kStringValue) break;
      result.text = value.string_value();
      return result;
  }
  const absl::string_view wanted = field.type() == v1::INTEGER   ? "an integer"
                                   : field.type() == v1::NUMBER  ? "a number"
                                   : field.type() == v1::BOOLEAN ? "a boolean"
                                                                 : "a string";
  return FieldError(path, DescribeMismatch(wanted, value));
}

void SetContextKey(const SpaceModel& model, Context* context) {
  std::string key;
  for (size_t i = 0; i < context->fields.size(); ++i) {
    const Context::Field& field = context->fields[i];
    if (i > 0) key.push_back(',');
    if (!field.present) {
      key.push_back('~');
    } else if (model.context_fields[i].type() == v1::STRING) {
      absl::StrAppend(&key, "s", field.text.size(), ":", field.text);
    } else {
      AppendDouble(field.number, &key);
    }
  }
  context->key = std::move(key);
}

std::optional<Context> MakeDefaultContext(const SpaceModel& model) {
  Context context;
  for (const v1::ContextField& field : model.context_fields) {
    if (!field.has_default_value()) {
      if (!field.optional()) return std::nullopt;
      context.fields.emplace_back();
      continue;
    }
    auto value = ParseContextValue(field, field.default_value(), field.name());
    if (!value.ok()) return std::nullopt;  // ParseSpace has refused these
    context.fields.push_back(*std::move(value));
  }
  SetContextKey(model, &context);
  return context;
}

}  // namespace cubicml
