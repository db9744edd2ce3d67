// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_parser.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/space_view.h"
#include "predictor/table_parser.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

constexpr int kMaxParameters = 256;
constexpr int kMaxContextFields = 256;
constexpr int kMaxConstraints = 256;
constexpr size_t kMaxKnobs = 1000;
constexpr size_t kMaxNameBytes = 64;

absl::Status CheckCount(int count, int limit, absl::string_view path) {
  if (count <= limit) return absl::OkStatus();
  return FieldError(path, absl::StrCat("has ", count, " entries; at most ",
                                       limit, " are allowed"));
}

absl::Status CheckText(absl::string_view text, const std::string& path) {
  return IsValidUtf8(text) ? absl::OkStatus()
                           : FieldError(path, "must be UTF-8");
}

bool IsNameShaped(absl::string_view name) {
  const auto is_letter = [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c));
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || c == '_' ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

// Multiplies, 0 standing for too many to remember.
size_t MultiplyCombinations(size_t a, size_t b) {
  if (a == 0 || b == 0 || a > SpaceView::kMaxRemembered / b) return 0;
  return a * b;
}

class Parser {
 public:
  Parser(const v1::Study& study, ExpressionParser expressions)
      : study_(study),
        expressions_(std::move(expressions)),
        model_(std::make_unique<SpaceModel>()) {}

  absl::StatusOr<std::unique_ptr<SpaceModel>> Parse() {
    CUBICML_RETURN_IF_ERROR(
        CheckCount(study_.parameters_size(), kMaxParameters, "parameters"));
    CUBICML_RETURN_IF_ERROR(
        CheckCount(study_.context_size(), kMaxContextFields, "context"));
    CUBICML_RETURN_IF_ERROR(
        CheckCount(study_.constraints_size(), kMaxConstraints, "constraints"));
    if (study_.parameters().empty()) {
      return FieldError("parameters",
                        "is empty; a study needs at least one to tune");
    }
    for (int i = 0; i < study_.context_size(); ++i) {
      CUBICML_RETURN_IF_ERROR(ParseContextField(
          study_.context(i), absl::StrCat("context[", i, "]")));
    }
    for (int i = 0; i < study_.parameters_size(); ++i) {
      CUBICML_RETURN_IF_ERROR(ParseParameter(
          study_.parameters(i), absl::StrCat("parameters[", i, "]")));
    }
    for (int i = 0; i < study_.constraints_size(); ++i) {
      CUBICML_RETURN_IF_ERROR(ParseConstraint(
          study_.constraints(i), absl::StrCat("constraints[", i, "]")));
    }
    std::vector<const Expression*> expressions;
    for (const Predicate& predicate : model_->predicates) {
      expressions.push_back(&predicate.expression);
    }
    model_->evaluators =
        std::make_unique<EvaluatorPool>(std::move(expressions));
    return std::move(model_);
  }

 private:
  // `path` is that of what is named.
  absl::Status ParseName(const std::string& name, const std::string& path) {
    const std::string at = absl::StrCat(path, ".name");
    if (!IsNameShaped(name)) {
      return FieldError(
          at, absl::StrCat(QuoteForMessage(name),
                           " must be a letter, then letters, digits and "
                           "underscores; at most ",
                           kMaxNameBytes, " bytes"));
    }
    const auto [taken, is_new] =
        owners_.emplace(absl::AsciiStrToLower(name), path);
    if (!is_new) {
      return FieldError(at, absl::StrCat(QuoteForMessage(name),
                                         " is the name of ", taken->second,
                                         " already (upper and lower case are "
                                         "the same in expressions)"));
    }
    if (!expressions_.IsPlainName(name)) {
      return FieldError(at,
                        absl::StrCat(QuoteForMessage(name),
                                     " means something else in an "
                                     "expression; choose another name, "
                                     "such as \"",
                                     name.substr(0, kMaxNameBytes - 2), "_\""));
    }
    names_.push_back(name);
    return absl::OkStatus();
  }

  absl::Status ParseContextField(const v1::ContextField& field,
                                 const std::string& path) {
    CUBICML_RETURN_IF_ERROR(ParseName(field.name(), path));
    if (field.type() == v1::VALUE_TYPE_UNSPECIFIED ||
        !v1::ValueType_IsValid(field.type())) {
      return FieldError(
          absl::StrCat(path, ".type"),
          "is not set; use one of INTEGER, NUMBER, STRING, BOOLEAN");
    }
    if (field.has_default_value()) {
      CUBICML_RETURN_IF_ERROR(
          ParseContextValue(field, field.default_value(),
                            absl::StrCat(path, ".default_value"))
              .status());
    }
    CUBICML_RETURN_IF_ERROR(
        CheckText(field.description(), absl::StrCat(path, ".description")));
    CUBICML_RETURN_IF_ERROR(
        CheckText(field.unit(), absl::StrCat(path, ".unit")));
    model_->context_index[field.name()] = model_->context_fields.size();
    model_->context_fields.push_back(field);
    return absl::OkStatus();
  }

  absl::Status ParseParameter(const v1::Parameter& parameter,
                              const std::string& path) {
    std::optional<size_t> active_if;
    if (!parameter.active_if().empty()) {
      // Before its own name is known: it sees what is declared earlier.
      CUBICML_ASSIGN_OR_RETURN(
          active_if, ParsePredicate(parameter.active_if(),
                                    absl::StrCat(path, ".active_if")));
    }
    CUBICML_RETURN_IF_ERROR(ParseName(parameter.name(), path));
    CUBICML_ASSIGN_OR_RETURN(Domain domain, Domain::Parse(parameter, path));
    CUBICML_RETURN_IF_ERROR(CheckRepeat(parameter.repeat(), path));
    CUBICML_RETURN_IF_ERROR(
        CheckText(parameter.description(), absl::StrCat(path, ".description")));
    CUBICML_RETURN_IF_ERROR(
        CheckText(parameter.unit(), absl::StrCat(path, ".unit")));
    const bool is_vector = parameter.repeat() > 0;
    ParameterModel made{
        .name = parameter.name(),
        .domain = std::move(domain),
        .first_knob = model_->knobs.size(),
        .knob_count =
            is_vector ? static_cast<size_t>(parameter.repeat()) : size_t{1},
        .is_vector = is_vector,
        .has_default = parameter.has_default_value(),
        .defaults = {},
        .active_if = active_if,
        .combinations = 1};
    CUBICML_RETURN_IF_ERROR(
        ParseDefault(parameter, absl::StrCat(path, ".default_value"), &made));
    CountCombinations(&made);
    AddKnobs(made);
    model_->parameter_index[made.name] = model_->parameters.size();
    model_->parameters.push_back(std::move(made));
    return absl::OkStatus();
  }

  absl::Status CheckRepeat(int repeat, const std::string& path) const {
    const std::string at = absl::StrCat(path, ".repeat");
    if (repeat < 0) {
      return FieldError(
          at,
          absl::StrCat("must be at least 1, or 0 for a scalar; got ", repeat));
    }
    const size_t knobs =
        model_->knobs.size() + static_cast<size_t>(std::max(repeat, 1));
    if (knobs > kMaxKnobs) {
      return FieldError(
          at, absl::StrCat("brings the study to ", knobs, " knobs; at most ",
                           kMaxKnobs, " are allowed"));
    }
    return absl::OkStatus();
  }

  absl::Status ParseDefault(const v1::Parameter& parameter,
                            const std::string& path, ParameterModel* made) {
    const v1::Value& value = parameter.default_value();
    if (!made->has_default) {
      made->defaults.assign(made->knob_count, made->domain.levels().front());
      return absl::OkStatus();
    }
    if (!made->is_vector || !value.has_list_value()) {
      CUBICML_ASSIGN_OR_RETURN(const double one,
                               made->domain.ParseValue(value, path));
      made->defaults.assign(made->knob_count, one);
      return absl::OkStatus();
    }
    const auto& list = value.list_value().values();
    if (static_cast<size_t>(list.size()) != made->knob_count) {
      return FieldError(absl::StrCat(path, ".list_value"),
                        absl::StrCat("must have repeat = ", made->knob_count,
                                     " values, got ", list.size()));
    }
    for (int e = 0; e < list.size(); ++e) {
      CUBICML_ASSIGN_OR_RETURN(
          const double one,
          made->domain.ParseValue(
              list.Get(e), absl::StrCat(path, ".list_value.values[", e, "]")));
      made->defaults.push_back(one);
    }
    return absl::OkStatus();
  }

  static void CountCombinations(ParameterModel* made) {
    for (size_t e = 0; e < made->knob_count; ++e) {
      made->combinations = MultiplyCombinations(made->combinations,
                                                made->domain.levels().size());
    }
    if (made->active_if.has_value() && made->combinations != 0) {
      ++made->combinations;
    }
  }

  void AddKnobs(const ParameterModel& made) {
    for (size_t e = 0; e < made.knob_count; ++e) {
      Knob knob;
      knob.name =
          made.is_vector ? absl::StrCat(made.name, "[", e, "]") : made.name;
      knob.parameter = model_->parameters.size();
      knob.element = made.is_vector ? static_cast<int>(e) : -1;
      knob.kind = made.domain.kind();
      knob.log_scale = made.domain.log_scale();
      knob.levels = made.domain.levels();
      knob.labels = made.domain.MakeLabels();
      knob.continuous = made.domain.continuous();
      knob.conditional = made.active_if.has_value();
      model_->knobs.push_back(std::move(knob));
    }
  }

  // Over the names that are known so far. Returns the index of the predicate.
  absl::StatusOr<size_t> ParsePredicate(const std::string& text,
                                        const std::string& path) {
    absl::StatusOr<Expression> expression = expressions_.Parse(text, names_);
    if (!expression.ok()) {
      return FieldError(path, expression.status().message());
    }
    Predicate predicate;
    predicate.combinations = 1;
    for (const size_t name : expression->uses()) {
      const size_t contexts = model_->context_fields.size();
      if (name < contexts) {
        predicate.variables.push_back({.is_context = true, .index = name});
        continue;
      }
      predicate.variables.push_back(
          {.is_context = false, .index = name - contexts});
      const ParameterModel& used = model_->parameters[name - contexts];
      for (size_t e = 0; e < used.knob_count; ++e) {
        predicate.knobs.push_back(used.first_knob + e);
      }
      predicate.combinations =
          MultiplyCombinations(predicate.combinations, used.combinations);
    }
    predicate.expression = *std::move(expression);
    model_->predicates.push_back(std::move(predicate));
    return model_->predicates.size() - 1;
  }

  absl::Status ParseConstraint(const v1::Constraint& constraint,
                               const std::string& path) {
    ConstraintModel made;
    made.path = path;
    CUBICML_RETURN_IF_ERROR(CheckText(constraint.description(),
                                      absl::StrCat(path, ".description")));
    switch (constraint.kind_case()) {
      case v1::Constraint::kExpression: {
        CUBICML_ASSIGN_OR_RETURN(
            made.predicate, ParsePredicate(constraint.expression(),
                                           absl::StrCat(path, ".expression")));
        made.text = constraint.expression();
        made.knobs = model_->predicates[*made.predicate].knobs;
        break;
      }
      case v1::Constraint::kTable: {
        CUBICML_ASSIGN_OR_RETURN(
            TableModel table,
            ParseTable(constraint.table(), *model_,
                       absl::StrCat(path, ".table"), &table_cells_));
        made.table = model_->tables.size();
        for (const TableColumn& column : table.columns) {
          if (!column.variable.is_context) made.knobs.push_back(column.knob);
        }
        made.text = DescribeTable(constraint.table());
        model_->tables.push_back(std::move(table));
        break;
      }
      case v1::Constraint::KIND_NOT_SET:
        return FieldError(path, "is empty; set expression or table");
    }
    model_->constraints.push_back(std::move(made));
    return absl::OkStatus();
  }

  const v1::Study& study_;
  ExpressionParser expressions_;
  std::unique_ptr<SpaceModel> model_;
  std::vector<std::string> names_;  // context, then parameters
  std::unordered_map<std::string, std::string> owners_;  // lower case to path
  size_t table_cells_ = 0;                               // of all tables so far
};

}  // namespace

absl::StatusOr<std::unique_ptr<SpaceModel>> ParseSpace(const v1::Study& study) {
  CUBICML_ASSIGN_OR_RETURN(ExpressionParser expressions,
                           ExpressionParser::Create());
  return Parser(study, std::move(expressions)).Parse();
}

}  // namespace cubicml
