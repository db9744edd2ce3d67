// SPDX-License-Identifier: Apache-2.0
//
// What proto3 calls a valid string, for text that comes in or goes out without
// Protobuf looking at it.

#ifndef CUBICML_SERVER_RPC_UTF8_H_
#define CUBICML_SERVER_RPC_UTF8_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

// Length of the longest prefix that is valid UTF-8 (RFC 3629).
size_t ValidUtf8Prefix(absl::string_view text);

// `text` with each invalid byte as '?', cut at a character to at most
// `max_bytes`; a cut ends with "...".
std::string SanitizeText(absl::string_view text, size_t max_bytes);

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_UTF8_H_
