// SPDX-License-Identifier: Apache-2.0
//
// SQL functions over vector parameters, which are JSON arrays in expressions:
// how many elements equal a value, and their sum, least and greatest. NULL (a
// vector that is not active) gives NULL.

#ifndef CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_
#define CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_

#include "absl/status/status.h"

struct sqlite3;

namespace cubicml {

// vec_count(vector, value), vec_sum, vec_min, vec_max(vector). A first argument
// that is no flat JSON array is an error of the evaluation, and so are strings
// in vec_sum. INTERNAL when SQLite has no memory for them.
absl::Status RegisterVectorFunctions(sqlite3* connection);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_
