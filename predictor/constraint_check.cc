// SPDX-License-Identifier: Apache-2.0

#include "predictor/constraint_check.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/expression_text.h"
#include "predictor/space_emptiness.h"
#include "predictor/space_evaluation.h"
#include "predictor/space_model.h"
#include "predictor/space_parser.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

// Evaluations of one constraint, enough to see that a remainder is none of 0
// and 1, and of all of them: an expression may take milliseconds.
constexpr size_t kProbesOfOne = 64;
constexpr size_t kProbesOfAll = 1024;
constexpr size_t kValuesInMessage = 12;

// The category that a text is compared with, if it is one.
const ParameterModel* FindCategory(const SpaceModel& model,
                                   const Predicate& predicate,
                                   const TextComparison& comparison) {
  for (const Variable& variable : predicate.variables) {
    if (variable.is_context) continue;
    const ParameterModel& parameter = model.parameters[variable.index];
    if (parameter.domain.kind() == KnobKind::kCategory &&
        parameter.is_vector == comparison.within &&
        absl::AsciiStrToLower(parameter.name) == comparison.name) {
      return &parameter;
    }
  }
  return nullptr;
}

absl::Status CheckTexts(const SpaceModel& model, const Predicate& predicate,
                        const std::string& path) {
  CUBICML_ASSIGN_OR_RETURN(const std::vector<TextComparison> comparisons,
                           FindTextComparisons(predicate.expression.text()));
  for (const TextComparison& comparison : comparisons) {
    const ParameterModel* const category =
        FindCategory(model, predicate, comparison);
    if (category == nullptr) continue;
    std::vector<std::string> values;
    bool is_value = false;
    for (const double level : category->domain.levels()) {
      const v1::Value value = category->domain.FormatValue(level);
      is_value |=
          value.has_string_value() && value.string_value() == comparison.text;
      if (values.size() == kValuesInMessage) {
        values.back() = "...";
      } else {
        values.push_back(DescribeValue(value));
      }
    }
    if (is_value) continue;
    return FieldError(
        path, absl::StrCat("compares ", category->name, " with the string ",
                           QuoteForMessage(comparison.text),
                           ", which is none of its values: ",
                           absl::StrJoin(values, ", ")));
  }
  return absl::OkStatus();
}

// The defaults, and what a context that must be given could be.
Context MakeProbeContext(const SpaceModel& model) {
  if (std::optional<Context> context = MakeDefaultContext(model)) {
    return *std::move(context);
  }
  Context context;
  for (const v1::ContextField& field : model.context_fields) {
    Context::Field value;
    if (field.has_default_value()) {
      value =
          ParseContextValue(field, field.default_value(), "").value_or(value);
    } else if (!field.optional()) {
      value.present = true;
      value.number = 1.0;
    }
    context.fields.push_back(std::move(value));
  }
  SetContextKey(model, &context);
  return context;
}

// The baseline, and points that differ from it in one of the knobs: first by
// the first level of each, then by the second.
std::vector<Point> MakeProbes(const SpaceModel& model,
                              const std::vector<size_t>& knobs,
                              const Point& baseline, size_t limit) {
  std::vector<Point> probes = {baseline};
  for (size_t level = 0; level < limit; ++level) {
    for (const size_t knob : knobs) {
      const std::vector<double>& levels = model.domain(knob).levels();
      if (level >= levels.size()) continue;
      if (probes.size() == limit) return probes;
      Point probe = baseline;
      probe[knob] = levels[level];
      probes.push_back(std::move(probe));
    }
  }
  return probes;
}

// The same study with constraints that are true where the original ones are
// true, false or NULL. Null where that makes one too long or too deep.
std::unique_ptr<SpaceModel> ParseProbes(v1::Study study) {
  for (v1::Constraint& constraint : *study.mutable_constraints()) {
    // Tables are not looked at, and long to read.
    constraint.set_expression(constraint.has_expression()
                                  ? absl::StrCat("coalesce((",
                                                 constraint.expression(),
                                                 ") IN (0, 1), 1)")
                                  : "1");
  }
  absl::StatusOr<std::unique_ptr<SpaceModel>> model = ParseSpace(study);
  return model.ok() ? *std::move(model) : nullptr;
}

absl::Status CheckAreBoolean(const SpaceModel& model, const v1::Study& study) {
  const std::unique_ptr<SpaceModel> probed = ParseProbes(study);
  if (probed == nullptr) return absl::OkStatus();
  const Context context = MakeProbeContext(model);
  SpaceEvaluation evaluation(*probed, context);
  Point baseline(model.knobs.size(), kNone);
  evaluation.Complete(nullptr, &baseline);
  const size_t limit =
      std::min(kProbesOfOne,
               kProbesOfAll / std::max<size_t>(1, model.constraints.size()));
  for (size_t c = 0; c < model.constraints.size(); ++c) {
    const ConstraintModel& constraint = model.constraints[c];
    if (!constraint.predicate.has_value()) continue;
    for (const Point& probe :
         MakeProbes(model, constraint.knobs, baseline, limit)) {
      if (evaluation.Evaluate(*probed->constraints[c].predicate, probe,
                              nullptr) != Verdict::kFalse) {
        continue;
      }
      const std::string where = DescribeKnobs(model, constraint.knobs, probe);
      return FieldError(
          absl::StrCat(constraint.path, ".expression"),
          absl::StrCat(QuoteForMessage(constraint.text),
                       " is neither true nor false",
                       where.empty() ? "" : " for ", where,
                       "; compare it with something, as in ... = 0"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNewConstraints(const v1::Study& study) {
  CUBICML_ASSIGN_OR_RETURN(const std::unique_ptr<SpaceModel> model,
                           ParseSpace(study));
  for (size_t p = 0; p < model->parameters.size(); ++p) {
    const std::optional<size_t> predicate = model->parameters[p].active_if;
    if (!predicate.has_value()) continue;
    CUBICML_RETURN_IF_ERROR(
        CheckTexts(*model, model->predicates[*predicate],
                   absl::StrCat("parameters[", p, "].active_if")));
  }
  for (const ConstraintModel& constraint : model->constraints) {
    if (!constraint.predicate.has_value()) continue;
    const Predicate& predicate = model->predicates[*constraint.predicate];
    const std::string path = absl::StrCat(constraint.path, ".expression");
    if (predicate.variables.empty()) {
      return FieldError(
          path, absl::StrCat(QuoteForMessage(constraint.text),
                             " names no parameter and no context field, so it "
                             "is the same for every configuration (names stand "
                             "without quotes)"));
    }
    CUBICML_RETURN_IF_ERROR(CheckTexts(*model, predicate, path));
  }
  return CheckAreBoolean(*model, study);
}

}  // namespace cubicml
