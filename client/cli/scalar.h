// SPDX-License-Identifier: Apache-2.0
//
// What a plain word means: YAML 1.2's core schema, and words on the command
// line for a declared type.

#ifndef CUBICML_CLIENT_CLI_SCALAR_H_
#define CUBICML_CLIENT_CLI_SCALAR_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// A plain (unquoted) scalar by the core schema of YAML 1.2: true, 12, 0x1f,
// 1e-3, or text. null and ~ give a value without a kind. Unlike in YAML 1.1,
// yes, no, on, off, 012 and 1:30 are nothing special. INVALID_ARGUMENT for an
// integer that does not fit 64 bits.
absl::StatusOr<v1::Value> ResolveScalar(absl::string_view text);

// `text` as a value of the type. INVALID_ARGUMENT says what it is not.
absl::StatusOr<v1::Value> ParseScalar(absl::string_view text,
                                      v1::ValueType type);

// 90s, 10m, 1h30m, or a number of seconds. Must be positive.
absl::StatusOr<absl::Duration> ParsePositiveDuration(absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_SCALAR_H_
