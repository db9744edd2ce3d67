// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_borders.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "predictor/space_evaluation.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

constexpr size_t kListedNames = 12;

// The least name of `values` that is not in `index`, so that the answer does
// not depend on the map's order.
std::optional<std::string> FindUnknown(
    const ValueMap& values,
    const std::unordered_map<std::string, size_t>& index) {
  std::optional<std::string> least;
  for (const auto& [name, value] : values) {
    if (index.count(name) != 0) continue;
    if (!least.has_value() || name < *least) least = name;
  }
  return least;
}

// Of what a request names: printable and short whatever was sent.
std::string JoinPath(absl::string_view root, absl::string_view name) {
  const std::string quoted = QuoteForMessage(name);
  return absl::StrCat(root, ".", quoted.substr(1, quoted.size() - 2));
}

template <typename Named, typename GetName>
std::string JoinNames(const std::vector<Named>& named, GetName get_name) {
  const auto shown =
      static_cast<std::ptrdiff_t>(std::min(named.size(), kListedNames));
  return absl::StrCat(named.empty() ? "none" : "",
                      absl::StrJoin(named.begin(), named.begin() + shown, ", ",
                                    [&](std::string* out, const Named& one) {
                                      out->append(get_name(one));
                                    }),
                      named.size() > kListedNames ? ", ..." : "");
}

absl::Status ParseVector(const ParameterModel& parameter,
                         const v1::Value& value, const std::string& path,
                         Point* point) {
  if (!value.has_list_value()) {
    return FieldError(
        path, DescribeMismatch(
                  absl::StrCat("a list of ", parameter.knob_count, " values"),
                  value));
  }
  const auto& list = value.list_value().values();
  if (static_cast<size_t>(list.size()) != parameter.knob_count) {
    return FieldError(path,
                      absl::StrCat("must be a list of ", parameter.knob_count,
                                   " values, got ", list.size()));
  }
  for (int e = 0; e < list.size(); ++e) {
    CUBICML_ASSIGN_OR_RETURN(
        (*point)[parameter.first_knob + static_cast<size_t>(e)],
        parameter.domain.ParseValue(list.Get(e),
                                    absl::StrCat(path, "[", e, "]")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PreconditionError(absl::string_view path,
                               absl::string_view message) {
  absl::Status status =
      absl::FailedPreconditionError(absl::StrCat(path, ": ", message));
  status.SetPayload(kFieldPayloadUrl, absl::Cord(path));
  return status;
}

absl::StatusOr<Point> ParseKnobs(const SpaceModel& model,
                                 const ValueMap& parameters,
                                 absl::string_view root) {
  if (const auto unknown = FindUnknown(parameters, model.parameter_index)) {
    return FieldError(
        JoinPath(root, *unknown),
        absl::StrCat("is no parameter of the study, which has ",
                     JoinNames(model.parameters, [](const ParameterModel& p) {
                       return p.name;
                     })));
  }
  Point point(model.knobs.size(), kNone);
  for (const ParameterModel& parameter : model.parameters) {
    const auto given = parameters.find(parameter.name);
    if (given == parameters.end()) continue;
    const std::string path = absl::StrCat(root, ".", parameter.name);
    if (parameter.is_vector) {
      CUBICML_RETURN_IF_ERROR(
          ParseVector(parameter, given->second, path, &point));
    } else {
      CUBICML_ASSIGN_OR_RETURN(
          point[parameter.first_knob],
          parameter.domain.ParseValue(given->second, path));
    }
  }
  return point;
}

absl::StatusOr<Context> ParseContextFields(const SpaceModel& model,
                                           const ValueMap& context) {
  if (const auto unknown = FindUnknown(context, model.context_index)) {
    return FieldError(
        JoinPath("context", *unknown),
        absl::StrCat(
            "is no context field of the study, which has ",
            JoinNames(model.context_fields, [](const v1::ContextField& field) {
              return field.name();
            })));
  }
  Context result;
  for (const v1::ContextField& field : model.context_fields) {
    const std::string path = absl::StrCat("context.", field.name());
    const auto given = context.find(field.name());
    const v1::Value* value = given != context.end() ? &given->second
                             : field.has_default_value()
                                 ? &field.default_value()
                                 : nullptr;
    if (value != nullptr) {
      CUBICML_ASSIGN_OR_RETURN(Context::Field parsed,
                               ParseContextValue(field, *value, path));
      result.fields.push_back(std::move(parsed));
    } else if (field.optional()) {
      result.fields.emplace_back();
    } else {
      return FieldError(path, "is missing; the study requires it");
    }
  }
  SetContextKey(model, &result);
  return result;
}

absl::StatusOr<Point> ParseValidPoint(const SpaceModel& model,
                                      const ValueMap& parameters,
                                      const Context& context) {
  CUBICML_ASSIGN_OR_RETURN(Point point,
                           ParseKnobs(model, parameters, "parameters"));
  SpaceEvaluation evaluation(model, context);
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const ParameterModel& parameter = model.parameters[p];
    const bool given = !std::isnan(point[parameter.first_knob]);
    if (given == evaluation.IsActive(p, point, nullptr)) continue;
    const std::string path = absl::StrCat("parameters.", parameter.name);
    if (!parameter.active_if.has_value()) {
      return FieldError(path, "is missing");
    }
    const std::string rule = QuoteForMessage(
        model.predicates[*parameter.active_if].expression.text());
    return FieldError(
        path, given ? absl::StrCat("is given although it is not active: ", rule,
                                   " is not true")
                    : absl::StrCat("is missing although it is active: ", rule,
                                   " is true"));
  }
  if (const auto broken = evaluation.FindBroken(point)) {
    const ConstraintModel& constraint = model.constraints[*broken];
    return FieldError(constraint.path, evaluation.DescribeBroken(constraint));
  }
  return point;
}

absl::Status CheckValidPoint(const SpaceModel& model, const Point& point,
                             const Context& context, const FixedKnobs& fixed) {
  if (point.size() != model.knobs.size()) {
    return FieldError("parameters",
                      absl::StrCat("the study has ", model.knobs.size(),
                                   " knobs, the point ", point.size()));
  }
  SpaceEvaluation evaluation(model, context);
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const ParameterModel& parameter = model.parameters[p];
    const bool active = evaluation.IsActive(p, point, nullptr);
    for (size_t e = 0; e < parameter.knob_count; ++e) {
      const size_t knob = parameter.first_knob + e;
      const double value = point[knob];
      const std::string& name = model.knobs[knob].name;
      if (std::isnan(value) == active) {
        return FieldError(absl::StrCat("parameters.", name),
                          active ? "has no value although it is active"
                                 : "has a value although it is not active");
      }
      if (active && !parameter.domain.Contains(value)) {
        return FieldError(
            absl::StrCat("parameters.", name),
            absl::StrCat(FormatDouble(value), " is no value of its domain"));
      }
      if (!std::isnan(fixed[knob]) && fixed[knob] != value) {
        return FieldError(absl::StrCat("fixed_parameters.", name),
                          "has another value than it was fixed to");
      }
    }
  }
  if (const auto broken = evaluation.FindBroken(point)) {
    const ConstraintModel& constraint = model.constraints[*broken];
    return FieldError(constraint.path, evaluation.DescribeBroken(constraint));
  }
  return absl::OkStatus();
}

ValueMap FormatKnobs(const SpaceModel& model, const Point& point) {
  ValueMap result;
  for (const ParameterModel& parameter : model.parameters) {
    if (std::isnan(point[parameter.first_knob])) continue;
    if (!parameter.is_vector) {
      result[parameter.name] =
          parameter.domain.FormatValue(point[parameter.first_knob]);
      continue;
    }
    v1::ValueList* list = result[parameter.name].mutable_list_value();
    for (size_t e = 0; e < parameter.knob_count; ++e) {
      *list->add_values() =
          parameter.domain.FormatValue(point[parameter.first_knob + e]);
    }
  }
  return result;
}

ValueMap FormatContextFields(const SpaceModel& model, const Context& context) {
  ValueMap result;
  for (size_t i = 0; i < model.context_fields.size(); ++i) {
    const v1::ContextField& field = model.context_fields[i];
    const Context::Field& value = context.fields[i];
    if (!value.present) continue;
    v1::Value& formatted = result[field.name()];
    switch (field.type()) {
      case v1::INTEGER:
        formatted.set_int64_value(static_cast<int64_t>(value.number));
        break;
      case v1::NUMBER:
        formatted.set_double_value(value.number);
        break;
      case v1::BOOLEAN:
        formatted.set_bool_value(value.number != 0.0);
        break;
      default:
        formatted.set_string_value(value.text);
    }
  }
  return result;
}

}  // namespace cubicml
