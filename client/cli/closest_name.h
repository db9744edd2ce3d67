// SPDX-License-Identifier: Apache-2.0
//
// "did you mean": the known name that a mistyped one is closest to.

#ifndef CUBICML_CLIENT_CLI_CLOSEST_NAME_H_
#define CUBICML_CLIENT_CLI_CLOSEST_NAME_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

// "; did you mean 'scale'?", or the list of `names` when none is close and
// there are few, or nothing.
std::string SuggestName(absl::string_view word,
                        std::span<const absl::string_view> names);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_CLOSEST_NAME_H_
