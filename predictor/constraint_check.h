// SPDX-License-Identifier: Apache-2.0
//
// Constraints that are well formed and cannot be meant.

#ifndef CUBICML_PREDICTOR_CONSTRAINT_CHECK_H_
#define CUBICML_PREDICTOR_CONSTRAINT_CHECK_H_

#include "absl/status/status.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// For whoever writes constraints, not for a study that is stored already.
// INVALID_ARGUMENT at a constraint that names no parameter and no context
// field, at one that is neither true nor false near the baseline, and at a
// constraint or active_if that compares a category with a text that is none of
// its values. Errors as SearchSpace::Parse, too.
absl::Status CheckNewConstraints(const v1::Study& study);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_CONSTRAINT_CHECK_H_
