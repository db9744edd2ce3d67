// SPDX-License-Identifier: Apache-2.0
//
// Makes text that came from anywhere fit for the wire.

#ifndef CUBICML_SERVER_RPC_SANITIZE_TEXT_H_
#define CUBICML_SERVER_RPC_SANITIZE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

// `text` with each byte that is not UTF-8 as '?', cut at a character to at
// most `max_bytes`; a cut ends with "...".
std::string SanitizeText(absl::string_view text, size_t max_bytes);

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_SANITIZE_TEXT_H_
