// SPDX-License-Identifier: Apache-2.0
//
// Where the next page of a list starts, as text that clients hand back. Pages
// continue after a key, not at an offset, so that rows that come or go between
// two calls neither repeat nor hide others, and every page costs the same.

#ifndef CUBICML_STORAGE_PAGE_TOKEN_H_
#define CUBICML_STORAGE_PAGE_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/filter.h"

namespace cubicml {

// The last resource of a page: the value that the list is ordered by
// (monostate: it has none and stands among those at the end), and its id.
struct PageCursor {
  FilterValue key;
  int64_t id = 0;
};

// `list` says what is listed: the method, its parent, filter and order. A token
// is good for that list only.
std::string FormatPageToken(absl::string_view list, const PageCursor& cursor);

// INVALID_ARGUMENT on the field "page_token" when the token was not made for
// `list` or not made here.
absl::StatusOr<PageCursor> ParsePageToken(absl::string_view list,
                                          absl::string_view token);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_PAGE_TOKEN_H_
