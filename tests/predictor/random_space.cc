// SPDX-License-Identifier: Apache-2.0

#include "tests/predictor/random_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string TextOf(double index) {
  return absl::StrCat("v", static_cast<int>(index));
}

}  // namespace

RandomSpace::RandomSpace(uint64_t seed, bool required_context) : rng_(seed) {
  gpus_ = int64_t{1} << rng_.Below(5);
  v1::ContextField* field = study_.add_context();
  field->set_name("gpus");
  field->set_type(v1::INTEGER);
  if (!required_context) field->mutable_default_value()->set_int64_value(gpus_);
  const uint64_t parameters = 1 + rng_.Below(5);
  for (uint64_t i = 0; i < parameters; ++i) AddParameter();
  const uint64_t constraints = rng_.Below(4);
  for (uint64_t i = 0; i < constraints; ++i) AddConstraint();
}

ValueMap RandomSpace::context() const {
  ValueMap values;
  values["gpus"].set_int64_value(gpus_);
  return values;
}

void RandomSpace::AddParameter() {
  Parameter parameter;
  parameter.name = absl::StrCat("p", parameters_.size());
  parameter.first_knob = parameter_of_.size();
  v1::Parameter* proto = study_.add_parameters();
  proto->set_name(parameter.name);
  switch (rng_.Below(5)) {
    case 0: {  // 1, 2, 4, ...
      const uint64_t count = 1 + rng_.Below(4);
      for (uint64_t k = 0; k < count; ++k) {
        proto->mutable_integer()->add_values(int64_t{1} << k);
        parameter.values.push_back(static_cast<double>(int64_t{1} << k));
      }
      break;
    }
    case 1: {
      const auto min = static_cast<int64_t>(rng_.Below(5)) - 2;
      const auto step = static_cast<int64_t>(1 + rng_.Below(3));
      const auto steps = static_cast<int64_t>(1 + rng_.Below(4));
      proto->mutable_integer()->set_min(min);
      proto->mutable_integer()->set_max(min + steps * step);
      proto->mutable_integer()->set_step(step);
      for (int64_t k = 0; k <= steps; ++k) {
        parameter.values.push_back(static_cast<double>(min + k * step));
      }
      break;
    }
    case 2: {  // tenths, which no double is exactly
      const auto steps = static_cast<int64_t>(1 + rng_.Below(4));
      proto->mutable_number()->set_min(0.1);
      proto->mutable_number()->set_max(0.1 * static_cast<double>(steps + 1));
      proto->mutable_number()->set_step(0.1);
      for (int64_t k = 1; k <= steps + 1; ++k) {
        parameter.values.push_back(static_cast<double>(k) / 10.0);
      }
      break;
    }
    case 3:
      for (int64_t k = 0; k < 2; ++k) {
        proto->mutable_category()->add_values()->set_bool_value(k == 0);
        parameter.values.push_back(static_cast<double>(k));
      }
      break;
    default:
      parameter.is_text = true;
      const uint64_t count = 1 + rng_.Below(3);
      for (uint64_t k = 0; k < count; ++k) {
        parameter.values.push_back(static_cast<double>(k));
        proto->mutable_category()->add_values()->set_string_value(
            TextOf(parameter.values.back()));
      }
  }
  if (rng_.Below(4) == 0) {
    parameter.is_vector = true;
    parameter.count = 1 + rng_.Below(3);
    proto->set_repeat(static_cast<int32_t>(parameter.count));
  }
  parameter.default_value = parameter.values.front();
  if (parameter.is_text && rng_.Below(2) == 0) {
    parameter.default_value = parameter.values.back();
    proto->mutable_default_value()->set_string_value(
        TextOf(parameter.default_value));
  }
  AddCondition(&parameter, proto);
  for (size_t e = 0; e < parameter.count; ++e) {
    parameter_of_.push_back(parameters_.size());
  }
  parameters_.push_back(std::move(parameter));
}

void RandomSpace::AddCondition(Parameter* parameter, v1::Parameter* proto) {
  if (parameters_.empty() || rng_.Below(3) != 0) return;
  Parameter& other = parameters_[rng_.Below(parameters_.size())];
  if (other.is_vector ||
      study_.parameters(static_cast<int>(&other - parameters_.data()))
              .category()
              .values_size() > 0) {
    if (!other.is_text) return;
    // Of a vector: how often a text occurs in it.
    other.steers = true;
    const size_t first = other.first_knob;
    const size_t count = other.count;
    if (other.is_vector) {
      proto->set_active_if(
          absl::StrCat("vec_count(", other.name, ", 'v0') > 0"));
    } else {
      proto->set_active_if(absl::StrCat(other.name, " = 'v0'"));
    }
    parameter->active = [first, count](const Point& point) -> Truth {
      if (std::isnan(point[first])) return std::nullopt;
      bool any = false;
      for (size_t e = 0; e < count; ++e) any = any || point[first + e] == 0.0;
      return any;
    };
    return;
  }
  other.steers = true;
  const size_t knob = other.first_knob;
  if (rng_.Below(2) == 0) {
    proto->set_active_if(absl::StrCat(other.name, " > 1"));
    parameter->active = [knob](const Point& point) -> Truth {
      if (std::isnan(point[knob])) return std::nullopt;
      return point[knob] > 1.0;
    };
  } else {
    proto->set_active_if(
        absl::StrCat(other.name, " IS NULL OR ", other.name, " * 2 <= gpus"));
    const auto gpus = static_cast<double>(gpus_);
    parameter->active = [knob, gpus](const Point& point) -> Truth {
      return std::isnan(point[knob]) || point[knob] * 2.0 <= gpus;
    };
  }
}

// A numeric scalar, as often as there is one.
size_t RandomSpace::PickScalar() {
  for (int tries = 0; tries < 20; ++tries) {
    const size_t p = rng_.Below(parameters_.size());
    const v1::Parameter& proto = study_.parameters(static_cast<int>(p));
    if (!parameters_[p].is_vector && !proto.has_category()) return p;
  }
  return parameters_.size();
}

void RandomSpace::AddConstraint() {
  const uint64_t kind = rng_.Below(5);
  if (kind == 0 && AddTable()) return;
  if (kind == 1 && AddVectorConstraint()) return;
  AddScalarConstraint();
}

void RandomSpace::AddScalarConstraint() {
  const size_t a = PickScalar();
  const size_t b = PickScalar();
  if (a == parameters_.size() || b == parameters_.size()) return;
  const std::string& x = parameters_[a].name;
  const std::string& y = parameters_[b].name;
  const size_t i = parameters_[a].first_knob;
  const size_t j = parameters_[b].first_knob;
  const auto gpus = static_cast<double>(gpus_);
  const auto either = [](const Point& p, size_t k, size_t l) {
    return std::isnan(p[k]) || std::isnan(p[l]);
  };
  std::string text;
  switch (rng_.Below(5)) {
    case 0:
      text = absl::StrCat(x, " * ", y, " <= gpus");
      rules_.push_back([=](const Point& p) -> Truth {
        if (either(p, i, j)) return std::nullopt;
        return p[i] * p[j] <= gpus;
      });
      break;
    case 1:
      text = absl::StrCat(x, " <> ", y, " OR ", x, " = 1");
      rules_.push_back([=](const Point& p) -> Truth {
        // NULL OR true is true, NULL OR false is NULL: neither is false.
        if (either(p, i, j)) return std::nullopt;
        return p[i] != p[j] || p[i] == 1.0;
      });
      break;
    case 2:
      text = absl::StrCat("gpus % ", x, " = 0");
      rules_.push_back([=](const Point& p) -> Truth {
        if (std::isnan(p[i])) return std::nullopt;
        const double divisor = std::trunc(p[i]);
        if (divisor == 0.0) return std::nullopt;  // SQL: x % 0 is NULL
        return std::fmod(gpus, divisor) == 0.0;
      });
      break;
    case 3:
      text = absl::StrCat("coalesce(", x, ", 0) + coalesce(", y, ", 0) < 4");
      rules_.push_back([=](const Point& p) -> Truth {
        const double left = std::isnan(p[i]) ? 0.0 : p[i];
        return left + (std::isnan(p[j]) ? 0.0 : p[j]) < 4.0;
      });
      break;
    default:
      text = absl::StrCat(x, " IN (1, 2, 3, 8)");
      rules_.push_back([=](const Point& p) -> Truth {
        if (std::isnan(p[i])) return std::nullopt;
        return p[i] == 1.0 || p[i] == 2.0 || p[i] == 3.0 || p[i] == 8.0;
      });
  }
  study_.add_constraints()->set_expression(text);
}

bool RandomSpace::AddVectorConstraint() {
  for (const Parameter& parameter : parameters_) {
    if (!parameter.is_vector) continue;
    const size_t first = parameter.first_knob;
    const size_t count = parameter.count;
    if (parameter.is_text) {
      study_.add_constraints()->set_expression(
          absl::StrCat("vec_count(", parameter.name, ", 'v0') <= 1"));
      rules_.push_back([=](const Point& p) -> Truth {
        if (std::isnan(p[first])) return std::nullopt;
        return std::count(
                   p.begin() + static_cast<std::ptrdiff_t>(first),
                   p.begin() + static_cast<std::ptrdiff_t>(first + count),
                   0.0) <= 1;
      });
      return true;
    }
    const int index = static_cast<int>(&parameter - parameters_.data());
    if (study_.parameters(index).has_category()) continue;
    study_.add_constraints()->set_expression(absl::StrCat(
        parameter.name, " ->> 0 <= ", parameter.name, " ->> ", count - 1));
    rules_.push_back([=](const Point& p) -> Truth {
      if (std::isnan(p[first])) return std::nullopt;
      return p[first] <= p[first + count - 1];
    });
    return true;
  }
  return false;
}

// Random rows over some scalars, in any order of columns.
bool RandomSpace::AddTable() {
  std::vector<size_t> columns;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!parameters_[p].is_vector && rng_.Below(3) != 0) columns.push_back(p);
  }
  if (columns.empty()) return false;
  rng_.Shuffle(&columns);
  v1::TableConstraint* table = study_.add_constraints()->mutable_table();
  const bool with_context = rng_.Below(2) == 0;
  if (with_context) table->add_columns("gpus");
  for (const size_t p : columns) table->add_columns(parameters_[p].name);
  // NaN in a row stands for a cell without a value.
  std::vector<Point> rows;
  const uint64_t count = 1 + rng_.Below(12);
  for (uint64_t r = 0; r < count; ++r) {
    v1::TableConstraint::Row* row = table->add_rows();
    const bool of_context = !with_context || rng_.Below(4) != 0;
    if (with_context) {
      row->add_values()->set_int64_value(of_context ? gpus_ : gpus_ + 1);
    }
    Point cells;
    for (const size_t p : columns) {
      const Parameter& parameter = parameters_[p];
      v1::Value* cell = row->add_values();
      const double value =
          parameter.values[rng_.Below(parameter.values.size())];
      if (parameter.active && rng_.Below(3) == 0) {
        cells.push_back(kNone);
        continue;
      }
      cells.push_back(value);
      const v1::Parameter& proto = study_.parameters(static_cast<int>(p));
      if (proto.has_category()) {
        *cell = proto.category().values(static_cast<int>(value));
      } else if (proto.has_integer()) {
        cell->set_int64_value(static_cast<int64_t>(value));
      } else {
        cell->set_double_value(value);
      }
    }
    if (of_context) rows.push_back(cells);
  }
  std::vector<size_t> knobs;
  for (const size_t p : columns) knobs.push_back(parameters_[p].first_knob);
  rules_.push_back([rows, knobs](const Point& point) -> Truth {
    for (const Point& row : rows) {
      bool match = true;
      for (size_t c = 0; c < knobs.size(); ++c) {
        const double value = point[knobs[c]];
        match = match && (std::isnan(value) || value == row[c]);
      }
      if (match) return true;
    }
    return false;
  });
  return true;
}

bool RandomSpace::HoldsEverywhere(const Point& point) const {
  return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule(point).value_or(true);
  });
}

void RandomSpace::Extend(size_t at, Point* point,
                         std::vector<Point>* out) const {
  if (at == parameters_.size()) {
    if (HoldsEverywhere(*point)) out->push_back(*point);
    return;
  }
  const Parameter& parameter = parameters_[at];
  if (parameter.active && !parameter.active(*point).value_or(false)) {
    for (size_t e = 0; e < parameter.count; ++e) {
      (*point)[parameter.first_knob + e] = kNone;
    }
    Extend(at + 1, point, out);
    return;
  }
  // Counts in the base of the number of values.
  std::vector<size_t> digits(parameter.count, 0);
  while (true) {
    for (size_t e = 0; e < parameter.count; ++e) {
      (*point)[parameter.first_knob + e] = parameter.values[digits[e]];
    }
    Extend(at + 1, point, out);
    size_t e = parameter.count;
    while (e > 0 && ++digits[e - 1] == parameter.values.size()) {
      digits[--e] = 0;
    }
    if (e == 0) return;
  }
}

std::vector<Point> RandomSpace::ListValid() const {
  std::vector<Point> points;
  Point point(parameter_of_.size(), kNone);
  Extend(0, &point, &points);
  return points;
}

bool RandomSpace::IsValid(const Point& point) const {
  for (const Parameter& parameter : parameters_) {
    const bool active =
        !parameter.active || parameter.active(point).value_or(false);
    for (size_t e = 0; e < parameter.count; ++e) {
      const double value = point[parameter.first_knob + e];
      if (std::isnan(value) == active) return false;
      if (active && std::count(parameter.values.begin(), parameter.values.end(),
                               value) == 0) {
        return false;
      }
    }
  }
  return HoldsEverywhere(point);
}

Point RandomSpace::Baseline() const {
  Point point(parameter_of_.size(), kNone);
  for (const Parameter& parameter : parameters_) {
    if (parameter.active && !parameter.active(point).value_or(false)) continue;
    for (size_t e = 0; e < parameter.count; ++e) {
      point[parameter.first_knob + e] = parameter.default_value;
    }
  }
  return point;
}

const std::vector<double>& RandomSpace::values(size_t knob) const {
  return parameters_[parameter_of_[knob]].values;
}

bool RandomSpace::has_conditions() const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [](const Parameter& p) { return p.active != nullptr; });
}

bool RandomSpace::Steers(size_t knob) const {
  return parameters_[parameter_of_[knob]].steers;
}

}  // namespace cubicml
