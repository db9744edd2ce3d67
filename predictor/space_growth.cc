// SPDX-License-Identifier: Apache-2.0
//
// How a living study may change.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "predictor/space_borders.h"
#include "predictor/space_model.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

absl::Status CheckParameterExtends(const ParameterModel& parameter,
                                   const ParameterModel& old,
                                   const std::string& path) {
  if (parameter.is_vector != old.is_vector ||
      parameter.knob_count != old.knob_count) {
    return PreconditionError(absl::StrCat(path, ".repeat"),
                             "cannot change: trials have values for it");
  }
  return parameter.domain.CheckExtends(old.domain, path);
}

bool MayBeLeftOut(const v1::ContextField& field) {
  return field.optional() || field.has_default_value();
}

absl::Status CheckContextExtends(const SpaceModel& model,
                                 const SpaceModel& old) {
  for (const v1::ContextField& field : old.context_fields) {
    if (model.context_index.count(field.name()) != 0) continue;
    return PreconditionError("context",
                             absl::StrCat(QuoteForMessage(field.name()),
                                          " is missing; context fields cannot "
                                          "be removed"));
  }
  for (size_t i = 0; i < model.context_fields.size(); ++i) {
    const v1::ContextField& field = model.context_fields[i];
    const std::string path = absl::StrCat("context[", i, "]");
    const auto before = old.context_index.find(field.name());
    const bool is_new = before == old.context_index.end();
    if ((is_new || MayBeLeftOut(old.context_fields[before->second])) &&
        !MayBeLeftOut(field)) {
      return PreconditionError(
          absl::StrCat(path, ".optional"),
          "must be set, or a default given: there may be trials without it");
    }
    if (!is_new && field.type() != old.context_fields[before->second].type()) {
      return PreconditionError(absl::StrCat(path, ".type"),
                               "cannot change: trials have values for it");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSpaceExtends(const SpaceModel& model, const SpaceModel& old) {
  for (const ParameterModel& parameter : old.parameters) {
    if (model.parameter_index.count(parameter.name) != 0) continue;
    return PreconditionError(
        "parameters", absl::StrCat(QuoteForMessage(parameter.name),
                                   " is missing; parameters cannot be removed, "
                                   "but their domain may be widened"));
  }
  for (size_t p = 0; p < model.parameters.size(); ++p) {
    const ParameterModel& parameter = model.parameters[p];
    const std::string path = absl::StrCat("parameters[", p, "]");
    const auto before = old.parameter_index.find(parameter.name);
    if (before != old.parameter_index.end()) {
      CUBICML_RETURN_IF_ERROR(CheckParameterExtends(
          parameter, old.parameters[before->second], path));
    } else if (!parameter.has_default) {
      return PreconditionError(
          absl::StrCat(path, ".default_value"),
          "is needed for a new parameter: it is what the trials so far had");
    }
  }
  return CheckContextExtends(model, old);
}

}  // namespace cubicml
