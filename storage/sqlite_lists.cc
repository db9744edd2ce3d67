// SPDX-License-Identifier: Apache-2.0
//
// Lists and scans. A page continues after the last key of the one before, by
// an index; resources without a value of what a list is ordered by follow
// those that have one.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/list_query.h"
#include "storage/sqlite_study_store.h"

namespace cubicml {
namespace {

// What a list reads: a table with the columns of its FilterFields.
struct ListSource {
  absl::string_view table;       // with a join, if any
  absl::string_view id;          // column that breaks ties, unique in the list
  absl::string_view bytes;       // column with the serialized resource
  std::optional<StudyId> study;  // whose trials; nullopt: no trials
};

struct ListRow {
  PageCursor cursor;
  std::string bytes;
};

bool MayBeMissing(const FilterField& field) {
  return field.name == "objective" || field.name == "end_time";
}

FilterValue KeyOf(const Statement& row, int column, FilterType type) {
  if (row.IsNull(column)) return FilterValue();
  switch (type) {
    case FilterType::kString:
    case FilterType::kEnum:
      return std::string(row.Text(column));
    case FilterType::kReal:
      return row.Real(column);
    case FilterType::kInteger:
    case FilterType::kBoolean:
    case FilterType::kTime:
      break;
  }
  return row.Int(column);
}

// The rows of one half of a list: those with a key, or those without.
class ListHalf {
 public:
  ListHalf(const ListSource& source, const ListQuery& query, bool with_key)
      : key_(query.order().field->column),
        type_(query.order().field->type),
        filter_(query.filter().ToSql()),
        source_(source) {
    const bool descending = query.order().descending;
    const absl::string_view after = descending ? " < " : " > ";
    const absl::string_view direction = descending ? " DESC" : "";
    sql_ = absl::StrCat("SELECT ", key_, ", ", source.id, ", ", source.bytes,
                        " FROM ", source.table, " WHERE ");
    if (source.study.has_value()) absl::StrAppend(&sql_, "study_id = ? AND ");
    if (MayBeMissing(*query.order().field)) {
      absl::StrAppend(&sql_, key_, with_key ? " IS NOT NULL" : " IS NULL",
                      " AND ");
    }
    const bool key_is_id = key_ == source.id;
    if (query.cursor().has_value() && std::holds_alternative<std::monostate>(
                                          query.cursor()->key) != with_key) {
      cursor_ = *query.cursor();
      with_cursor_ = true;
      compare_key_ = with_key && !key_is_id;
      if (compare_key_) {
        absl::StrAppend(&sql_, "(", key_, ", ", source.id, ")", after,
                        "(?, ?) AND ");
      } else {
        absl::StrAppend(&sql_, source.id, after, "? AND ");
      }
    }
    absl::StrAppend(&sql_, filter_.sql, " ORDER BY ");
    if (with_key && !key_is_id) {
      absl::StrAppend(&sql_, key_, direction, ", ");
    }
    absl::StrAppend(&sql_, source.id, direction, " LIMIT ?");
  }

  // Appends at most `limit` rows.
  absl::Status Read(Database* db, size_t limit, std::vector<ListRow>* rows) {
    CUBICML_ASSIGN_OR_RETURN(Statement list, db->Prepare(sql_));
    int index = 0;
    if (source_.study.has_value()) list.BindInt(++index, source_.study->value);
    if (with_cursor_) {
      if (compare_key_) list.BindValue(++index, cursor_.key);
      list.BindInt(++index, cursor_.id);
    }
    for (const FilterValue& value : filter_.values) {
      list.BindValue(++index, value);
    }
    list.BindInt(++index, static_cast<int64_t>(limit));
    while (true) {
      CUBICML_ASSIGN_OR_RETURN(const bool found, list.Step());
      if (!found) return absl::OkStatus();
      rows->push_back(
          {{KeyOf(list, 0, type_), list.Int(1)}, std::string(list.Blob(2))});
    }
  }

 private:
  const absl::string_view key_;
  const FilterType type_;
  const SqlCondition filter_;
  const ListSource source_;
  std::string sql_;
  PageCursor cursor_;
  bool with_cursor_ = false;
  bool compare_key_ = false;
};

// The rows of a page and one more when there is a next page.
absl::Status ReadRows(Database* db, const ListSource& source,
                      const ListQuery& query, std::vector<ListRow>* rows) {
  const size_t wanted = static_cast<size_t>(query.page_size()) + 1;
  rows->clear();
  const bool past_keys =
      query.cursor().has_value() &&
      std::holds_alternative<std::monostate>(query.cursor()->key);
  if (!past_keys) {
    CUBICML_RETURN_IF_ERROR(
        ListHalf(source, query, true).Read(db, wanted, rows));
  }
  if (rows->size() < wanted && MayBeMissing(*query.order().field)) {
    CUBICML_RETURN_IF_ERROR(
        ListHalf(source, query, false).Read(db, wanted - rows->size(), rows));
  }
  return absl::OkStatus();
}

// Drops the row beyond the page. Returns the next page's token.
std::string CutPage(const ListQuery& query, std::vector<ListRow>* rows) {
  const auto page_size = static_cast<size_t>(query.page_size());
  if (rows->size() <= page_size) return "";
  rows->resize(page_size);
  return query.NextPageToken(rows->back().cursor);
}

template <typename Message>
absl::Status ParseInto(const std::string& bytes, Message* message) {
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return absl::DataLossError("a stored resource cannot be read");
}

}  // namespace

absl::StatusOr<StudyPage> SqliteStudyStore::ListStudies(
    const ListOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const ListQuery query,
                           ListQuery::ForStudies(options));
  // CROSS: the studies come first, in the order of their index.
  const ListSource source{
      "studies CROSS JOIN study_definitions ON study_id = id", "id",
      "definition", std::nullopt};
  std::vector<ListRow> rows;
  CUBICML_RETURN_IF_ERROR(ReadLong(
      [&](Database* db) { return ReadRows(db, source, query, &rows); }));
  StudyPage page;
  page.next_page_token = CutPage(query, &rows);
  for (const ListRow& row : rows) {
    StoredStudy& stored = page.studies.emplace_back();
    stored.id = StudyId{row.cursor.id};
    CUBICML_RETURN_IF_ERROR(ParseInto(row.bytes, &stored.study));
  }
  return page;
}

absl::StatusOr<TrialPage> SqliteStudyStore::ListTrials(
    StudyId study, const ListOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const ListQuery query,
                           ListQuery::ForTrials(study, options));
  const ListSource source{"trials", "number", "trial", study};
  std::vector<ListRow> rows;
  CUBICML_RETURN_IF_ERROR(ReadLong(
      [&](Database* db) { return ReadRows(db, source, query, &rows); }));
  TrialPage page;
  page.next_page_token = CutPage(query, &rows);
  for (const ListRow& row : rows) {
    CUBICML_RETURN_IF_ERROR(ParseInto(row.bytes, &page.trials.emplace_back()));
  }
  return page;
}

// In pages of one moment each: a reader that stays would keep the log from
// being emptied, and `visit` may take its time or call the store.
absl::Status SqliteStudyStore::ScanTrials(
    StudyId study, TrialNumber after, absl::string_view filter,
    const std::function<absl::Status(v1::Trial&&)>& visit) {
  CUBICML_ASSIGN_OR_RETURN(const Filter parsed, ParseTrialFilter(filter));
  const SqlCondition condition = parsed.ToSql();
  const std::string sql = absl::StrCat(
      "SELECT number, trial FROM trials WHERE study_id = ?1 AND number > ?2 "
      "AND ",
      condition.sql, " ORDER BY number LIMIT ", kScanPageTrials);
  int64_t last = after.value;
  std::vector<std::string> page;
  do {
    page.clear();
    const absl::Status read = ReadLong([&](Database* db) -> absl::Status {
      CUBICML_ASSIGN_OR_RETURN(Statement scan, db->Prepare(sql));
      scan.BindInt(1, study.value);
      scan.BindInt(2, last);
      int index = 2;
      for (const FilterValue& value : condition.values) {
        scan.BindValue(++index, value);
      }
      while (true) {
        CUBICML_ASSIGN_OR_RETURN(const bool found, scan.Step());
        if (!found) return absl::OkStatus();
        last = scan.Int(0);
        page.emplace_back(scan.Blob(1));
      }
    });
    CUBICML_RETURN_IF_ERROR(read);
    for (const std::string& bytes : page) {
      v1::Trial trial;
      CUBICML_RETURN_IF_ERROR(ParseInto(bytes, &trial));
      CUBICML_RETURN_IF_ERROR(visit(std::move(trial)));
    }
  } while (page.size() == kScanPageTrials);
  return absl::OkStatus();
}

}  // namespace cubicml
