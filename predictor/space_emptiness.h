// SPDX-License-Identifier: Apache-2.0
//
// Whether the constraints of a search space leave anything, and if not, which
// of them are to blame.

#ifndef CUBICML_PREDICTOR_SPACE_EMPTINESS_H_
#define CUBICML_PREDICTOR_SPACE_EMPTINESS_H_

#include "absl/status/status.h"
#include "predictor/search_space.h"
#include "predictor/space_model.h"

namespace cubicml {

// OK when the baseline is valid in this context. Else INVALID_ARGUMENT at a
// constraint, saying what is wrong: the defaults, and which configuration would
// do; or a smallest set of constraints (none of which can be left out) that
// leaves nothing; or, when a bounded search could not tell, that it could not.
absl::Status CheckBaselineIsValid(const SpaceModel& model,
                                  const Context& context);

// "tp = 2, sharding[0] = full", for messages.
std::string DescribeKnobs(const SpaceModel& model,
                          const std::vector<size_t>& knobs, const Point& point);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_EMPTINESS_H_
