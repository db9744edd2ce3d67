// SPDX-License-Identifier: Apache-2.0
//
// The second half of Domain: what it does with values that it has accepted.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "predictor/domain.h"
#include "predictor/space_borders.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

void AppendJsonString(absl::string_view text, std::string* json) {
  constexpr char kHex[] = "0123456789abcdef";
  json->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json->push_back('\\');
      json->push_back(c);
    } else if (byte < 0x20) {
      json->append("\\u00");
      json->push_back(kHex[byte >> 4]);
      json->push_back(kHex[byte & 15]);
    } else {
      json->push_back(c);
    }
  }
  json->push_back('"');
}

// JSON that SQLite reads back as REAL.
void AppendJsonReal(double value, std::string* json) {
  const size_t start = json->size();
  AppendDouble(value, json);
  if (json->find_first_of(".e", start) == std::string::npos) {
    json->append(".0");
  }
}

}  // namespace

v1::Value Domain::FormatValue(double value) const {
  v1::Value result;
  switch (kind_) {
    case KnobKind::kInteger:
      result.set_int64_value(static_cast<int64_t>(value));
      return result;
    case KnobKind::kNumber:
      result.set_double_value(value);
      return result;
    case KnobKind::kCategory:
      break;
  }
  return categories_[static_cast<size_t>(value)];
}

SqlValue Domain::FormatSql(double value) const {
  switch (kind_) {
    case KnobKind::kInteger:
      return SqlValue::Integer(static_cast<int64_t>(value));
    case KnobKind::kNumber:
      return SqlValue::Real(value);
    case KnobKind::kCategory:
      break;
  }
  const v1::Value& category = categories_[static_cast<size_t>(value)];
  switch (category.kind_case()) {
    case v1::Value::kInt64Value:
      return SqlValue::Integer(category.int64_value());
    case v1::Value::kDoubleValue:
      return SqlValue::Real(category.double_value());
    case v1::Value::kBoolValue:
      return SqlValue::Integer(category.bool_value() ? 1 : 0);
    default:
      return SqlValue::Text(category.string_value());
  }
}

void Domain::AppendJson(double value, std::string* json) const {
  const SqlValue sql = FormatSql(value);
  switch (sql.type) {
    case SqlValue::Type::kInteger:
      absl::StrAppend(json, sql.integer);
      break;
    case SqlValue::Type::kReal:
      AppendJsonReal(sql.real, json);
      break;
    case SqlValue::Type::kText:
      AppendJsonString(sql.text, json);
      break;
    case SqlValue::Type::kNull:
      json->append("null");
  }
}

void Domain::AppendKey(double value, std::string* key) const {
  if (kind_ == KnobKind::kCategory) {
    key->append(category_keys_[static_cast<size_t>(value)]);
  } else {
    AppendDouble(value, key);
  }
}

int32_t Domain::FindLevel(double value) const {
  const auto found = std::lower_bound(levels_.begin(), levels_.end(), value);
  if (found == levels_.end() || *found != value) return -1;
  return static_cast<int32_t>(found - levels_.begin());
}

bool Domain::Contains(double value) const {
  if (continuous_) return value >= levels_.front() && value <= levels_.back();
  return FindLevel(value) >= 0;
}

absl::Status Domain::CheckExtends(const Domain& old,
                                  absl::string_view path) const {
  if (kind_ != old.kind_) {
    return PreconditionError(path, "the kind of a parameter cannot change");
  }
  if (old.continuous_ && !continuous_) {
    return PreconditionError(
        path,
        "a step cannot be added: trials have any value of the "
        "range");
  }
  const absl::string_view field = kind_ == KnobKind::kInteger  ? ".integer"
                                  : kind_ == KnobKind::kNumber ? ".number"
                                                               : ".category";
  const auto lacks = [&](double level) {
    return !ParseValue(old.FormatValue(level), path).ok();
  };
  // The ends speak for a continuous range.
  const std::vector<double> wanted =
      old.continuous_
          ? std::vector<double>{old.levels_.front(), old.levels_.back()}
          : old.levels_;
  const auto missing = std::find_if(wanted.begin(), wanted.end(), lacks);
  if (missing == wanted.end()) return absl::OkStatus();
  return PreconditionError(
      absl::StrCat(path, field),
      absl::StrCat("no longer holds ", DescribeValue(old.FormatValue(*missing)),
                   ", which trials may have; a domain can only grow"));
}

}  // namespace cubicml
