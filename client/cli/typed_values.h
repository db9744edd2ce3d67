// SPDX-License-Identifier: Apache-2.0
//
// NAME=VALUE words of the command line and cells of tables, typed by what the
// study declares.

#ifndef CUBICML_CLIENT_CLI_TYPED_VALUES_H_
#define CUBICML_CLIENT_CLI_TYPED_VALUES_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// "tp=8" -> "tp", "8"; the value may hold further "=". INVALID_ARGUMENT
// without "=" or a name.
absl::StatusOr<std::pair<std::string, std::string>> SplitAssignment(
    absl::string_view text);

// Type of a parameter's values, of one element for a vector.
v1::ValueType TypeOf(const v1::Parameter& parameter);

// A vector is "full,grad,none" or a JSON array; one word stands for all of its
// elements.
absl::StatusOr<v1::Value> ParseParameterValue(const v1::Parameter& parameter,
                                              absl::string_view text);

// INVALID_ARGUMENT, with a suggestion, for names that the study does not
// declare, and for a name given twice.
absl::StatusOr<Values> ParseContext(const v1::Study& study,
                                    std::span<const std::string> assignments);
absl::StatusOr<Values> ParseParameters(
    const v1::Study& study, std::span<const std::string> assignments);

// The same names with the same values?
bool SameValues(const ValueMap& a, const ValueMap& b);

// Names of the study's metrics, objectives first.
std::vector<std::string> MetricNames(const v1::Study& study);

// The value that the parameter has in the baseline when it is active: its
// default, or the first of its domain.
v1::Value DefaultOf(const v1::Parameter& parameter);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_TYPED_VALUES_H_
