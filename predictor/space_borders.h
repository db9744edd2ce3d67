// SPDX-License-Identifier: Apache-2.0
//
// Parameters and contexts as requests carry them, from and to points.

#ifndef CUBICML_PREDICTOR_SPACE_BORDERS_H_
#define CUBICML_PREDICTOR_SPACE_BORDERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "predictor/search_space.h"
#include "predictor/space_model.h"

namespace cubicml {

// FAILED_PRECONDITION "path: message", with the path as payload.
absl::Status PreconditionError(absl::string_view path,
                               absl::string_view message);

// NaN for the knobs of parameters that are not given. INVALID_ARGUMENT naming
// "ROOT.NAME": unknown, or no value of the parameter.
absl::StatusOr<Point> ParseKnobs(const SpaceModel& model,
                                 const ValueMap& parameters,
                                 absl::string_view root);

// As the methods of SearchSpace.
absl::StatusOr<Context> ParseContextFields(const SpaceModel& model,
                                           const ValueMap& context);
absl::StatusOr<Point> ParseValidPoint(const SpaceModel& model,
                                      const ValueMap& parameters,
                                      const Context& context);
absl::Status CheckValidPoint(const SpaceModel& model, const Point& point,
                             const Context& context, const FixedKnobs& fixed);
ValueMap FormatKnobs(const SpaceModel& model, const Point& point);
ValueMap FormatContextFields(const SpaceModel& model, const Context& context);
absl::Status CheckSpaceExtends(const SpaceModel& model, const SpaceModel& old);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_BORDERS_H_
