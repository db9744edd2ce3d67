// SPDX-License-Identifier: Apache-2.0

#include "storage/list_query.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {
namespace {

std::span<const FilterField> StudyFields() {
  static const auto* const fields = new std::array<FilterField, 4>{{
      {"name", FilterType::kString, "name"},
      {"display_name", FilterType::kString, "display_name"},
      {"create_time", FilterType::kTime, "create_time_us"},
      {"labels.", FilterType::kString, "labels"},
  }};
  return *fields;
}

// The first is the default.
std::span<const FilterField> StudyOrders() {
  static const auto* const fields = new std::array<FilterField, 2>{{
      {"name", FilterType::kString, "name"},
      {"create_time", FilterType::kTime, "create_time_us"},
  }};
  return *fields;
}

std::span<const FilterField> TrialFields() {
  static const auto* const fields = new std::array<FilterField, 10>{{
      {"number", FilterType::kInteger, "number"},
      {"state", FilterType::kEnum, "state", v1::Trial::State_descriptor()},
      {"reason", FilterType::kEnum, "reason", v1::Trial::Reason_descriptor()},
      {"source", FilterType::kEnum, "source", v1::Trial::Source_descriptor()},
      {"client_id", FilterType::kString, "client_id"},
      {"attempt", FilterType::kInteger, "attempt"},
      {"late", FilterType::kBoolean, "late"},
      {"objective", FilterType::kReal, "objective"},
      {"create_time", FilterType::kTime, "create_time_us"},
      {"end_time", FilterType::kTime, "end_time_us"},
  }};
  return *fields;
}

std::span<const FilterField> TrialOrders() {
  static const auto* const fields = new std::array<FilterField, 4>{{
      {"number", FilterType::kInteger, "number"},
      {"objective", FilterType::kReal, "objective"},
      {"create_time", FilterType::kTime, "create_time_us"},
      {"end_time", FilterType::kTime, "end_time_us"},
  }};
  return *fields;
}

absl::StatusOr<ListOrder> ParseOrder(absl::string_view text,
                                     std::span<const FilterField> orders) {
  ListOrder order;
  order.field = &orders.front();
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, ' ', absl::SkipWhitespace());
  if (words.empty()) return order;
  const auto found = std::find_if(
      orders.begin(), orders.end(),
      [&words](const FilterField& field) { return field.name == words[0]; });
  const bool direction_ok =
      words.size() == 1 ||
      (words.size() == 2 && (words[1] == "asc" || words[1] == "desc"));
  if (found == orders.end() || !direction_ok) {
    const std::string names = absl::StrJoin(
        orders, ", ", [](std::string* out, const FilterField& field) {
          absl::StrAppend(out, field.name);
        });
    return FieldError("order_by", absl::StrCat("expected one of ", names,
                                               ", alone or with ' desc'"));
  }
  order.field = &*found;
  order.descending = words.size() == 2 && words[1] == "desc";
  return order;
}

// Whether a token's key can have come from a list in this order.
bool KeyFits(const FilterValue& key, FilterType type) {
  if (std::holds_alternative<std::monostate>(key)) return true;
  switch (type) {
    case FilterType::kString:
    case FilterType::kEnum:
      return std::holds_alternative<std::string>(key);
    case FilterType::kReal:
      return std::holds_alternative<double>(key);
    case FilterType::kInteger:
    case FilterType::kBoolean:
    case FilterType::kTime:
      return std::holds_alternative<int64_t>(key);
  }
  return false;
}

}  // namespace

absl::StatusOr<ListQuery> ListQuery::ForStudies(const ListOptions& options) {
  return Parse("ListStudies", StudyFields(), StudyOrders(), options);
}

absl::StatusOr<ListQuery> ListQuery::ForTrials(StudyId study,
                                               const ListOptions& options) {
  return Parse(absl::StrCat("ListTrials/", study.value), TrialFields(),
               TrialOrders(), options);
}

absl::StatusOr<ListQuery> ListQuery::Parse(std::string list,
                                           std::span<const FilterField> fields,
                                           std::span<const FilterField> orders,
                                           const ListOptions& options) {
  if (options.page_size < 1) {
    return FieldError("page_size", "must be at least 1");
  }
  ListQuery query;
  query.page_size_ = std::min(options.page_size, kMaxPageSize);
  CUBICML_ASSIGN_OR_RETURN(query.filter_,
                           Filter::Parse(options.filter, fields));
  CUBICML_ASSIGN_OR_RETURN(query.order_, ParseOrder(options.order_by, orders));
  // Not the text of the order: "name" and "" are the same list.
  query.list_ = absl::StrCat(list, "\n", query.order_.field->name, "\n",
                             query.order_.descending, "\n", options.filter);
  if (!options.page_token.empty()) {
    CUBICML_ASSIGN_OR_RETURN(PageCursor cursor,
                             ParsePageToken(query.list_, options.page_token));
    if (!KeyFits(cursor.key, query.order_.field->type)) {
      return FieldError("page_token", "not a token of this list");
    }
    query.cursor_ = std::move(cursor);
  }
  return query;
}

std::string ListQuery::NextPageToken(const PageCursor& last) const {
  return FormatPageToken(list_, last);
}

absl::StatusOr<Filter> ParseTrialFilter(absl::string_view text) {
  return Filter::Parse(text, TrialFields());
}

}  // namespace cubicml
