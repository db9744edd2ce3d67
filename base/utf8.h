// SPDX-License-Identifier: Apache-2.0
//
// Whether bytes are UTF-8. A proto3 string that is not is serialized without
// complaint and cannot be parsed again, so nothing may be stored without this
// check.

#ifndef CUBICML_BASE_UTF8_H_
#define CUBICML_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace cubicml {

// As RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsValidUtf8(absl::string_view bytes);

// Length of the longest prefix that is.
size_t ValidUtf8Prefix(absl::string_view bytes);

}  // namespace cubicml

#endif  // CUBICML_BASE_UTF8_H_
