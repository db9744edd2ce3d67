// SPDX-License-Identifier: Apache-2.0
//
// ListOptions made into a query that has been checked: which fields can be
// filtered and ordered by, and where the page starts. Shared by every
// StudyStore, so that all understand the same language.

#ifndef CUBICML_STORAGE_LIST_QUERY_H_
#define CUBICML_STORAGE_LIST_QUERY_H_

#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/strong_id.h"
#include "storage/filter.h"
#include "storage/page_token.h"
#include "storage/study_store.h"

namespace cubicml {

// Upper bound of ListOptions::page_size; more is cut to it.
inline constexpr int kMaxPageSize = 1000;

// By `field`, those without a value last, then by id in the same direction.
struct ListOrder {
  const FilterField* field = nullptr;
  bool descending = false;
};

// Constant after construction.
class ListQuery {
 public:
  // INVALID_ARGUMENT on the field page_size, page_token, filter or order_by.
  static absl::StatusOr<ListQuery> ForStudies(const ListOptions& options);
  static absl::StatusOr<ListQuery> ForTrials(StudyId study,
                                             const ListOptions& options);

  int page_size() const { return page_size_; }
  const Filter& filter() const { return filter_; }
  const ListOrder& order() const { return order_; }
  // The last resource of the page before; nullopt: the first page.
  const std::optional<PageCursor>& cursor() const { return cursor_; }

  std::string NextPageToken(const PageCursor& last) const;

 private:
  static absl::StatusOr<ListQuery> Parse(std::string list,
                                         std::span<const FilterField> fields,
                                         std::span<const FilterField> orders,
                                         const ListOptions& options);

  std::string list_;  // what tokens are bound to
  int page_size_ = 0;
  Filter filter_;
  ListOrder order_;
  std::optional<PageCursor> cursor_;
};

// The filter of ListTrials and ExportTrials alone. INVALID_ARGUMENT.
absl::StatusOr<Filter> ParseTrialFilter(absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_LIST_QUERY_H_
