// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/sanitize_text.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace cubicml {

std::string SanitizeText(absl::string_view text, size_t max_bytes) {
  std::string result;
  while (!text.empty() && result.size() <= max_bytes) {
    const size_t valid = ValidUtf8Prefix(text);
    absl::StrAppend(&result, text.substr(0, valid));
    text.remove_prefix(valid);
    if (!text.empty()) {
      result.push_back('?');
      text.remove_prefix(1);
    }
  }
  if (result.size() <= max_bytes) return result;
  constexpr absl::string_view kMark = "...";
  if (max_bytes < kMark.size()) return "";
  result.resize(max_bytes - kMark.size());
  result.resize(ValidUtf8Prefix(result));
  return absl::StrCat(result, kMark);
}

}  // namespace cubicml
