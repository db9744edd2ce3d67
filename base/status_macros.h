// SPDX-License-Identifier: Apache-2.0
//
// Early return on errors, in the shape of the macros that Abseil users know.
// Distributions ship Abseil without them.

#ifndef CUBICML_BASE_STATUS_MACROS_H_
#define CUBICML_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Evaluates `expr` (an absl::Status) once and returns it when it is an error.
#define CUBICML_RETURN_IF_ERROR(expr)                    \
  do {                                                   \
    if (::absl::Status cubicml_status_internal = (expr); \
        !cubicml_status_internal.ok())                   \
      return cubicml_status_internal;                    \
  } while (false)

#define CUBICML_STATUS_CONCAT_INNER(a, b) a##b
#define CUBICML_STATUS_CONCAT(a, b) CUBICML_STATUS_CONCAT_INNER(a, b)

// CUBICML_ASSIGN_OR_RETURN(const Row row, store.Get(id)); `lhs` must not hold a
// comma outside parentheses.
#define CUBICML_ASSIGN_OR_RETURN(lhs, expr) \
  CUBICML_ASSIGN_OR_RETURN_INNER(           \
      CUBICML_STATUS_CONCAT(cubicml_status_or_internal_, __LINE__), lhs, expr)
#define CUBICML_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return std::move(tmp).status();       \
  lhs = *std::move(tmp)

namespace cubicml {

// The same status with "context: " before its message; payloads stay. OK stays
// OK. For layer crossings.
inline absl::Status WithContext(const absl::Status& status,
                                absl::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(),
                      absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace cubicml

#endif  // CUBICML_BASE_STATUS_MACROS_H_
