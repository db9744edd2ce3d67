// SPDX-License-Identifier: Apache-2.0

#include "predictor/domain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/number_grid.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

constexpr size_t kLevelsInMessage = 12;
// A number is on a grid value when it is this near, relative to its size.
constexpr double kGridTolerance = 1e-9;

absl::string_view NameType(v1::Value::KindCase kind) {
  switch (kind) {
    case v1::Value::kInt64Value:
      return "an integer";
    case v1::Value::kDoubleValue:
      return "a number";
    case v1::Value::kStringValue:
      return "a string";
    case v1::Value::kBoolValue:
      return "a boolean";
    default:
      return "a list";
  }
}

std::string MakeCategoryKey(const v1::Value& value) {
  std::string key;
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      absl::StrAppend(&key, "i", value.int64_value());
      break;
    case v1::Value::kDoubleValue:
      key = "n";
      AppendDouble(value.double_value(), &key);
      break;
    case v1::Value::kBoolValue:
      key = value.bool_value() ? "b1" : "b0";
      break;
    default:
      absl::StrAppend(&key, "s", value.string_value().size(), ":",
                      value.string_value());
  }
  return key;
}

std::string LabelCategory(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      return absl::StrCat(value.int64_value());
    case v1::Value::kDoubleValue:
      return FormatDouble(value.double_value());
    case v1::Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    default:
      return value.string_value();
  }
}

absl::Status CheckScale(v1::Scale scale, bool positive,
                        const std::string& path) {
  if (!v1::Scale_IsValid(scale)) {
    return FieldError(absl::StrCat(path, ".scale"),
                      "is not known; use SCALE_LINEAR or SCALE_LOG");
  }
  if (scale == v1::SCALE_LOG && !positive) {
    return FieldError(absl::StrCat(path, ".scale"),
                      "SCALE_LOG needs every value to be greater than 0");
  }
  return absl::OkStatus();
}

absl::Status TooManyValues(double count, double suggested_step,
                           absl::string_view path,
                           absl::string_view alternative) {
  return FieldError(
      path,
      absl::StrCat("the range has ", FormatDouble(count), " values; at most ",
                   kMaxDomainValues, " are allowed: raise the step to ",
                   FormatDouble(suggested_step), " or more, ", alternative));
}

}  // namespace

std::string DescribeMismatch(absl::string_view wanted, const v1::Value& value) {
  return absl::StrCat("must be ", wanted, ", got ", DescribeValue(value));
}

absl::Status CheckScalarValue(const v1::Value& value, absl::string_view path) {
  switch (value.kind_case()) {
    case v1::Value::kInt64Value:
      if (value.int64_value() > kMaxInteger ||
          value.int64_value() < -kMaxInteger) {
        return FieldError(path, absl::StrCat(value.int64_value(),
                                             " is beyond 2^53 = ", kMaxInteger,
                                             ", the largest exact integer"));
      }
      return absl::OkStatus();
    case v1::Value::kDoubleValue:
      if (!std::isfinite(value.double_value())) {
        return FieldError(
            path, absl::StrCat("must be finite, got ", value.double_value()));
      }
      return absl::OkStatus();
    case v1::Value::kStringValue: {
      const std::string& text = value.string_value();
      if (text.size() > kMaxStringBytes) {
        return FieldError(path, absl::StrCat("the string has ", text.size(),
                                             " bytes; at most ",
                                             kMaxStringBytes, " are allowed"));
      }
      if (!IsValidUtf8(text) || text.find('\0') != std::string::npos) {
        return FieldError(path, "the string must be UTF-8 without NUL");
      }
      return absl::OkStatus();
    }
    case v1::Value::kBoolValue:
      return absl::OkStatus();
    case v1::Value::kListValue:
      return FieldError(path, "must be one value, got a list");
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return FieldError(path, "has no value; set one of its kinds");
}

absl::StatusOr<Domain> Domain::Parse(const v1::Parameter& parameter,
                                     absl::string_view path) {
  Domain domain;
  switch (parameter.domain_case()) {
    case v1::Parameter::kInteger:
      CUBICML_RETURN_IF_ERROR(domain.ParseInteger(
          parameter.integer(), absl::StrCat(path, ".integer")));
      return domain;
    case v1::Parameter::kNumber:
      CUBICML_RETURN_IF_ERROR(domain.ParseNumber(
          parameter.number(), absl::StrCat(path, ".number")));
      return domain;
    case v1::Parameter::kCategory:
      CUBICML_RETURN_IF_ERROR(domain.ParseCategory(
          parameter.category(), absl::StrCat(path, ".category")));
      return domain;
    case v1::Parameter::DOMAIN_NOT_SET:
      break;
  }
  return FieldError(path,
                    "has no domain; set one of integer, number, category");
}

absl::Status Domain::ParseInteger(const v1::IntegerDomain& domain,
                                  const std::string& path) {
  kind_ = KnobKind::kInteger;
  if (domain.values().empty()) {
    CUBICML_RETURN_IF_ERROR(ParseIntegerRange(domain, path));
  } else {
    if (domain.min() != 0 || domain.max() != 0 || domain.step() != 0) {
      return FieldError(absl::StrCat(path, ".values"),
                        "cannot be given together with min, max or step");
    }
    if (static_cast<size_t>(domain.values_size()) > kMaxDomainValues) {
      return FieldError(
          absl::StrCat(path, ".values"),
          absl::StrCat("has ", domain.values_size(), " values; at most ",
                       kMaxDomainValues, " are allowed"));
    }
    for (int i = 0; i < domain.values_size(); ++i) {
      const std::string at = absl::StrCat(path, ".values[", i, "]");
      v1::Value value;
      value.set_int64_value(domain.values(i));
      CUBICML_RETURN_IF_ERROR(CheckScalarValue(value, at));
      if (i > 0 && domain.values(i) <= domain.values(i - 1)) {
        return FieldError(
            at, absl::StrCat("must be greater than ", domain.values(i - 1),
                             " before it, got ", domain.values(i)));
      }
      levels_.push_back(static_cast<double>(domain.values(i)));
    }
  }
  log_scale_ = domain.scale() == v1::SCALE_LOG;
  return CheckScale(domain.scale(), levels_.front() > 0.0, path);
}

absl::Status Domain::ParseIntegerRange(const v1::IntegerDomain& domain,
                                       const std::string& path) {
  if (domain.min() == 0 && domain.max() == 0) {
    return FieldError(path, "is empty; give min and max, or values");
  }
  v1::Value bound;
  bound.set_int64_value(domain.min());
  CUBICML_RETURN_IF_ERROR(CheckScalarValue(bound, absl::StrCat(path, ".min")));
  bound.set_int64_value(domain.max());
  CUBICML_RETURN_IF_ERROR(CheckScalarValue(bound, absl::StrCat(path, ".max")));
  if (domain.max() < domain.min()) {
    return FieldError(absl::StrCat(path, ".max"),
                      absl::StrCat("must be at least min = ", domain.min(),
                                   ", got ", domain.max()));
  }
  if (domain.step() < 0) {
    return FieldError(
        absl::StrCat(path, ".step"),
        absl::StrCat("must be at least 1 (or unset), got ", domain.step()));
  }
  const int64_t step = std::max<int64_t>(domain.step(), 1);
  const int64_t width = domain.max() - domain.min();
  if (width / step >= static_cast<int64_t>(kMaxDomainValues)) {
    return TooManyValues(
        static_cast<double>(width / step) + 1.0,
        static_cast<double>(width / static_cast<int64_t>(kMaxDomainValues) + 1),
        path, "or list the values that matter");
  }
  for (int64_t k = 0; k <= width / step; ++k) {
    levels_.push_back(static_cast<double>(domain.min() + k * step));
  }
  return absl::OkStatus();
}

absl::Status Domain::ParseNumber(const v1::NumberDomain& domain,
                                 const std::string& path) {
  kind_ = KnobKind::kNumber;
  for (const auto& [name, bound] :
       {std::pair{".min", domain.min()}, std::pair{".max", domain.max()},
        std::pair{".step", domain.step()}}) {
    if (!std::isfinite(bound)) {
      return FieldError(absl::StrCat(path, name),
                        absl::StrCat("must be finite, got ", bound));
    }
  }
  if (domain.min() == 0.0 && domain.max() == 0.0) {
    return FieldError(path, "is empty; give min and max");
  }
  if (domain.max() < domain.min()) {
    return FieldError(
        absl::StrCat(path, ".max"),
        absl::StrCat("must be at least min = ", FormatDouble(domain.min()),
                     ", got ", FormatDouble(domain.max())));
  }
  if (domain.step() < 0.0) {
    return FieldError(absl::StrCat(path, ".step"),
                      absl::StrCat("must be greater than 0 (or unset), got ",
                                   FormatDouble(domain.step())));
  }
  CUBICML_RETURN_IF_ERROR(CheckScale(domain.scale(), domain.min() > 0.0, path));
  log_scale_ = domain.scale() == v1::SCALE_LOG;
  step_ = domain.step();
  if (step_ == 0.0) {
    levels_ = MakeEvenValues(domain.min(), domain.max(), log_scale_,
                             kContinuousLevels);
    continuous_ = levels_.size() > 1;
    return absl::OkStatus();
  }
  const double count = CountGridValues(domain.min(), domain.max(), step_);
  if (count > static_cast<double>(kMaxDomainValues)) {
    return TooManyValues(
        count,
        domain.max() / static_cast<double>(kMaxDomainValues - 1) -
            domain.min() / static_cast<double>(kMaxDomainValues - 1),
        path, "or leave it out");
  }
  levels_ = MakeGrid(domain.min(), domain.max(), step_);
  for (size_t k = 1; k < levels_.size(); ++k) {
    if (levels_[k] - levels_[k - 1] < step_ / 2.0) {
      return FieldError(absl::StrCat(path, ".step"),
                        absl::StrCat(FormatDouble(step_),
                                     " is too small beside the bounds to tell "
                                     "neighbouring values apart"));
    }
  }
  return absl::OkStatus();
}

absl::Status Domain::ParseCategory(const v1::CategoryDomain& domain,
                                   const std::string& path) {
  kind_ = KnobKind::kCategory;
  if (domain.values().empty()) {
    return FieldError(absl::StrCat(path, ".values"),
                      "is empty; a category needs at least one value");
  }
  if (static_cast<size_t>(domain.values_size()) > kMaxDomainValues) {
    return FieldError(
        absl::StrCat(path, ".values"),
        absl::StrCat("has ", domain.values_size(), " values; at most ",
                     kMaxDomainValues, " are allowed"));
  }
  for (const v1::Value& given : domain.values()) {
    const std::string at =
        absl::StrCat(path, ".values[", categories_.size(), "]");
    CUBICML_RETURN_IF_ERROR(CheckScalarValue(given, at));
    v1::Value value = given;
    if (value.kind_case() == v1::Value::kDoubleValue &&
        value.double_value() == 0.0) {
      value.set_double_value(0.0);  // no negative zero
    }
    if (!categories_.empty() &&
        value.kind_case() != categories_.front().kind_case()) {
      return FieldError(
          at, DescribeMismatch(
                  absl::StrCat(NameType(categories_.front().kind_case()),
                               " like the values before it"),
                  value));
    }
    category_keys_.push_back(MakeCategoryKey(value));
    if (!category_index_.emplace(category_keys_.back(), categories_.size())
             .second) {
      return FieldError(at,
                        absl::StrCat(DescribeValue(value), " occurs twice"));
    }
    levels_.push_back(static_cast<double>(categories_.size()));
    categories_.push_back(std::move(value));
  }
  return absl::OkStatus();
}

std::vector<std::string> Domain::MakeLabels() const {
  std::vector<std::string> labels;
  labels.reserve(categories_.size());
  for (const v1::Value& value : categories_) {
    labels.push_back(LabelCategory(value));
  }
  return labels;
}

absl::StatusOr<double> Domain::ParseValue(const v1::Value& value,
                                          absl::string_view path) const {
  CUBICML_RETURN_IF_ERROR(CheckScalarValue(value, path));
  return kind_ == KnobKind::kCategory ? ParseCategoryValue(value, path)
                                      : ParseNumericValue(value, path);
}

absl::StatusOr<double> Domain::ParseNumericValue(const v1::Value& value,
                                                 absl::string_view path) const {
  const bool integer = value.kind_case() == v1::Value::kInt64Value;
  if (!integer && (kind_ == KnobKind::kInteger ||
                   value.kind_case() != v1::Value::kDoubleValue)) {
    return FieldError(
        path,
        DescribeMismatch(
            kind_ == KnobKind::kInteger ? "an integer" : "a number", value));
  }
  double number =
      integer ? static_cast<double>(value.int64_value()) : value.double_value();
  if (number == 0.0) number = 0.0;  // no negative zero
  if (continuous_ && number >= levels_.front() && number <= levels_.back()) {
    return number;
  }
  // The nearest level, when it is near enough.
  const auto above = std::lower_bound(levels_.begin(), levels_.end(), number);
  for (const auto level : {above == levels_.begin() ? above : above - 1,
                           above == levels_.end() ? above - 1 : above}) {
    const double tolerance =
        integer ? 0.0
                : std::min(kGridTolerance * std::max(std::fabs(*level), step_),
                           step_ / 1000.0);
    if (std::fabs(number - *level) <= tolerance) return *level;
  }
  const std::string shown = FormatDouble(number);
  if (number < levels_.front() || number > levels_.back()) {
    return FieldError(path, absl::StrCat(shown, " is outside of ",
                                         FormatDouble(levels_.front()), " to ",
                                         FormatDouble(levels_.back())));
  }
  return FieldError(
      path, absl::StrCat(shown, " is not on the grid; ",
                         levels_.size() <= kLevelsInMessage
                             ? DescribeLevels()
                             : absl::StrCat("the nearest values are ",
                                            FormatDouble(*(above - 1)), " and ",
                                            FormatDouble(*above))));
}

absl::StatusOr<double> Domain::ParseCategoryValue(
    const v1::Value& value, absl::string_view path) const {
  v1::Value wanted = value;
  const v1::Value::KindCase type = categories_.front().kind_case();
  if (type == v1::Value::kDoubleValue) {
    if (value.kind_case() == v1::Value::kInt64Value) {
      wanted.set_double_value(static_cast<double>(value.int64_value()));
    } else if (value.double_value() == 0.0) {
      wanted.set_double_value(0.0);
    }
  }
  if (value.kind_case() != type && wanted.kind_case() != type) {
    return FieldError(path, DescribeMismatch(NameType(type), value));
  }
  const auto found = category_index_.find(MakeCategoryKey(wanted));
  if (found == category_index_.end()) {
    return FieldError(path,
                      absl::StrCat(DescribeValue(value), " is no value of it; ",
                                   DescribeLevels()));
  }
  return static_cast<double>(found->second);
}

std::string Domain::DescribeLevels() const {
  std::vector<std::string> shown;
  for (size_t k = 0; k < std::min(levels_.size(), kLevelsInMessage); ++k) {
    if (kind_ != KnobKind::kCategory) {
      shown.push_back(FormatDouble(levels_[k]));
    } else if (categories_[k].kind_case() == v1::Value::kStringValue) {
      shown.push_back(QuoteForMessage(categories_[k].string_value()));
    } else {
      shown.push_back(LabelCategory(categories_[k]));
    }
  }
  return absl::StrCat("the values are ", absl::StrJoin(shown, ", "),
                      levels_.size() > shown.size() ? ", ..." : "");
}

}  // namespace cubicml
