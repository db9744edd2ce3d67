// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_evaluation.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

SqlValue FormatContextField(const v1::ContextField& field,
                            const Context::Field& value) {
  if (!value.present) return SqlValue::Null();
  switch (field.type()) {
    case v1::STRING:
      return SqlValue::Text(value.text);
    case v1::NUMBER:
      return SqlValue::Real(value.number);
    default:
      return SqlValue::Integer(static_cast<int64_t>(value.number));
  }
}

}  // namespace

SpaceEvaluation::SpaceEvaluation(const SpaceModel& model,
                                 const Context& context)
    : model_(model),
      context_(context),
      view_(nullptr),
      lease_(model.evaluators.get()) {}

SpaceEvaluation::SpaceEvaluation(const SpaceModel& model, const SpaceView& view)
    : model_(model),
      context_(view.context()),
      view_(&view),
      lease_(model.evaluators.get()) {}

std::optional<size_t> SpaceEvaluation::FindCombination(
    const Predicate& predicate, const std::vector<int32_t>& levels) {
  size_t combination = 0;
  for (const Variable& variable : predicate.variables) {
    if (variable.is_context) continue;
    const ParameterModel& parameter = model_.parameters[variable.index];
    combination *= parameter.combinations;
    if (levels[parameter.first_knob] == kNoLevel) {
      combination += parameter.combinations - 1;
      continue;
    }
    size_t code = 0;
    for (size_t e = 0; e < parameter.knob_count; ++e) {
      const int32_t level = levels[parameter.first_knob + e];
      if (level < 0) return std::nullopt;
      code =
          code * parameter.domain.levels().size() + static_cast<size_t>(level);
    }
    combination += code;
  }
  return combination;
}

void SpaceEvaluation::BindVariable(const Variable& variable,
                                   const Point& values, size_t slot) {
  if (variable.is_context) {
    bound_[slot] = FormatContextField(model_.context_fields[variable.index],
                                      context_.fields[variable.index]);
    return;
  }
  const ParameterModel& parameter = model_.parameters[variable.index];
  const size_t first = parameter.first_knob;
  if (std::isnan(values[first])) {
    bound_[slot] = SqlValue::Null();
  } else if (!parameter.is_vector) {
    bound_[slot] = parameter.domain.FormatSql(values[first]);
  } else {
    std::string& array = arrays_[slot];
    array.assign("[");
    for (size_t e = 0; e < parameter.knob_count; ++e) {
      if (e > 0) array.push_back(',');
      parameter.domain.AppendJson(values[first + e], &array);
    }
    array.push_back(']');
    bound_[slot] = SqlValue::Text(array);
  }
}

Verdict SpaceEvaluation::Evaluate(size_t index, const Point& values,
                                  const std::vector<int32_t>* levels) {
  const Predicate& predicate = model_.predicates[index];
  std::atomic<uint8_t>* entry = nullptr;
  if (view_ != nullptr && levels != nullptr &&
      view_->verdicts(index) != nullptr) {
    if (const auto combination = FindCombination(predicate, *levels)) {
      entry = view_->verdicts(index) + *combination;
      const uint8_t known = entry->load(std::memory_order_relaxed);
      if (known != 0) return static_cast<Verdict>(known - 1);
    }
  }
  bound_.resize(predicate.variables.size());
  if (arrays_.size() < bound_.size()) arrays_.resize(bound_.size());
  for (size_t slot = 0; slot < bound_.size(); ++slot) {
    BindVariable(predicate.variables[slot], values, slot);
  }
  const Verdict verdict = lease_->Evaluate(index, bound_);
  last_verdict_ = verdict;
  if (entry != nullptr) {
    entry->store(static_cast<uint8_t>(static_cast<uint8_t>(verdict) + 1),
                 std::memory_order_relaxed);
  }
  return verdict;
}

bool SpaceEvaluation::IsActive(size_t parameter, const Point& values,
                               const std::vector<int32_t>* levels) {
  const std::optional<size_t>& predicate =
      model_.parameters[parameter].active_if;
  return !predicate.has_value() ||
         Evaluate(*predicate, values, levels) == Verdict::kTrue;
}

bool SpaceEvaluation::Satisfies(const ConstraintModel& constraint,
                                const Point& values,
                                const std::vector<int32_t>* levels) {
  if (constraint.table.has_value()) {
    return SatisfiesTable(*constraint.table, values);
  }
  const Verdict verdict = Evaluate(*constraint.predicate, values, levels);
  return verdict == Verdict::kTrue || verdict == Verdict::kNull;
}

bool SpaceEvaluation::SatisfiesTable(size_t index, const Point& values) {
  const TableModel& table = model_.tables[index];
  matches_ = view_ != nullptr ? view_->table_roots(index)
                              : table.NarrowByContext(context_);
  for (size_t c = table.context_columns; c < table.columns.size(); ++c) {
    const TableColumn& column = table.columns[c];
    const int32_t code = column.FindCode(values[column.knob]);
    if (!table.rows.Narrow(matches_, c, code, &narrowed_)) return false;
    matches_.swap(narrowed_);
  }
  return !matches_.empty();
}

std::string SpaceEvaluation::DescribeBroken(
    const ConstraintModel& constraint) const {
  if (constraint.table.has_value()) {
    return absl::StrCat("is none of the rows of the ", constraint.text);
  }
  const std::string text = QuoteForMessage(constraint.text);
  if (last_verdict_ != Verdict::kError) {
    return absl::StrCat(text, " does not hold");
  }
  return absl::StrCat(text, " cannot be evaluated: ", lease_->error());
}

std::optional<size_t> SpaceEvaluation::FindBroken(const Point& point) {
  for (size_t c = 0; c < model_.constraints.size(); ++c) {
    if (!Satisfies(model_.constraints[c], point, nullptr)) return c;
  }
  return std::nullopt;
}

void SpaceEvaluation::Complete(const FixedKnobs* fixed, Point* point) {
  for (size_t p = 0; p < model_.parameters.size(); ++p) {
    const ParameterModel& parameter = model_.parameters[p];
    const bool active = IsActive(p, *point, nullptr);
    for (size_t e = 0; e < parameter.knob_count; ++e) {
      const size_t knob = parameter.first_knob + e;
      double& value = (*point)[knob];
      if (!active) {
        value = std::numeric_limits<double>::quiet_NaN();
      } else if (std::isnan(value)) {
        const bool decided = fixed != nullptr && !std::isnan((*fixed)[knob]);
        value = decided ? (*fixed)[knob] : parameter.defaults[e];
      }
    }
  }
}

int32_t FindLevel(const Domain& domain, double value) {
  if (std::isnan(value)) return kNoLevel;
  const int32_t level = domain.FindLevel(value);
  return level >= 0 ? level : kOffLevel;
}

std::vector<int32_t> FindLevels(const SpaceModel& model, const Point& point) {
  std::vector<int32_t> levels(point.size());
  for (size_t k = 0; k < point.size(); ++k) {
    levels[k] = FindLevel(model.domain(k), point[k]);
  }
  return levels;
}

}  // namespace cubicml
