// SPDX-License-Identifier: Apache-2.0
//
// From the proto of a study to the model of its search space.

#ifndef CUBICML_PREDICTOR_SPACE_PARSER_H_
#define CUBICML_PREDICTOR_SPACE_PARSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/space_model.h"

namespace cubicml {

// INVALID_ARGUMENT as SearchSpace::Parse, but for what takes a search: whether
// the constraints leave anything.
absl::StatusOr<std::unique_ptr<SpaceModel>> ParseSpace(const v1::Study& study);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_PARSER_H_
