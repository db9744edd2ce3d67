// SPDX-License-Identifier: Apache-2.0
//
// Values and numbers as text, for messages and keys.

#ifndef CUBICML_PREDICTOR_VALUE_TEXT_H_
#define CUBICML_PREDICTOR_VALUE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// The shortest decimal that reads back as the same double.
std::string FormatDouble(double value);
void AppendDouble(double value, std::string* out);

// For messages: `the string "full"`, `the integer 4`, `a list`, `nothing`.
// Short and printable whatever the value holds.
std::string DescribeValue(const v1::Value& value);
// Quoted, printable, and cut after 64 bytes.
std::string QuoteForMessage(absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_VALUE_TEXT_H_
