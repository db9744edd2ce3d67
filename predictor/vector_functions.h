// SPDX-License-Identifier: Apache-2.0
//
// What vec_count, vec_sum, vec_min and vec_max of expressions compute. Vectors
// are JSON arrays there.

#ifndef CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_
#define CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

using VectorElement = std::variant<int64_t, double, std::string>;

// All: INVALID_ARGUMENT when `json` is no flat array of numbers and strings.

// How many elements equal `value` as by `=` of SQL: numbers by value whatever
// their type, a text only a text.
absl::StatusOr<int64_t> CountInVector(absl::string_view json,
                                      const VectorElement& value);
// An integer when all elements are and it fits. INVALID_ARGUMENT for strings.
absl::StatusOr<VectorElement> SumVector(absl::string_view json);
// In the order of SQL: numbers before texts, texts by their bytes. nullopt of
// an empty vector.
absl::StatusOr<std::optional<VectorElement>> FindLeast(absl::string_view json);
absl::StatusOr<std::optional<VectorElement>> FindGreatest(
    absl::string_view json);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_VECTOR_FUNCTIONS_H_
