// SPDX-License-Identifier: Apache-2.0
//
// What a search space consists of, resolved: names are indices, domains and
// expressions are checked. Made by ParseSpace (space_parser.h), read by the
// walks, owned by SearchSpace.

#ifndef CUBICML_PREDICTOR_SPACE_MODEL_H_
#define CUBICML_PREDICTOR_SPACE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/domain.h"
#include "predictor/expression.h"
#include "predictor/search_space.h"
#include "predictor/table_constraint.h"

namespace cubicml {

// Where a knob has no value: it is inactive, or not decided.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// What an expression names.
struct Variable {
  bool is_context = false;
  size_t index = 0;  // of the context field or the parameter
};

// An expression with its names resolved: an active_if or a constraint.
struct Predicate {
  Expression expression;
  std::vector<Variable> variables;  // in the order of expression.uses()
  std::vector<size_t> knobs;        // of all its variables, increasing
  // How many assignments of levels its knobs have, "not active" being one of a
  // conditional parameter; 0 when they are too many to remember.
  size_t combinations = 0;
};

struct ParameterModel {
  std::string name;
  Domain domain;
  size_t first_knob = 0;
  size_t knob_count = 1;
  bool is_vector = false;
  bool has_default = false;
  std::vector<double> defaults;     // for each of its knobs
  std::optional<size_t> active_if;  // index into SpaceModel.predicates
  // Upper bound of the knobs' assignments; as Predicate.combinations.
  size_t combinations = 0;
};

// A column of a table: its values are codes, which are indices into `numbers`
// or `texts`.
struct TableColumn {
  Variable variable;  // a context field, or a parameter that is a scalar
  size_t knob = 0;    // of a parameter
  std::vector<double> numbers;     // increasing
  std::vector<std::string> texts;  // increasing; of a string context field
  // Between codes and levels of the knob; -1 in level_of_code where the value
  // of a continuous knob is between its levels.
  std::vector<int32_t> code_of_level;
  std::vector<int32_t> level_of_code;

  int32_t FindCode(double number) const;
  int32_t FindCode(const Context::Field& field) const;
};

struct TableModel {
  std::vector<TableColumn> columns;  // context fields first, then by knob
  size_t context_columns = 0;
  TableRows rows;

  // The rows that a context leaves; empty when none.
  TableRows::Matches NarrowByContext(const Context& context) const;
};

struct ConstraintModel {
  std::optional<size_t> predicate;  // either of the two
  std::optional<size_t> table;
  std::string path;           // "constraints[2]"
  std::string text;           // the expression, or "table of tp, pp"
  std::vector<size_t> knobs;  // increasing
};

// Constant after ParseSpace, but for the pool, which synchronises itself.
struct SpaceModel {
  std::vector<Knob> knobs;
  std::vector<ParameterModel> parameters;
  std::vector<v1::ContextField> context_fields;
  std::unordered_map<std::string, size_t> parameter_index;
  std::unordered_map<std::string, size_t> context_index;
  std::vector<Predicate> predicates;
  std::vector<TableModel> tables;
  std::vector<ConstraintModel> constraints;
  std::unique_ptr<EvaluatorPool> evaluators;  // of `predicates`

  const Domain& domain(size_t knob) const {
    return parameters[knobs[knob].parameter].domain;
  }
};

// The context in which every field has its default or is missing; nullopt when
// a field is required.
std::optional<Context> MakeDefaultContext(const SpaceModel& model);

// INVALID_ARGUMENT at `path` when the value is not of the field's type.
absl::StatusOr<Context::Field> ParseContextValue(const v1::ContextField& field,
                                                 const v1::Value& value,
                                                 absl::string_view path);

// Sets Context.key from its fields.
void SetContextKey(const SpaceModel& model, Context* context);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_MODEL_H_
