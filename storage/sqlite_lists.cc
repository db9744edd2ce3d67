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

// A page that is being read. It is full when it is known what follows it.
class PageRows {
 public:
  PageRows(const ListQuery& query, size_t max_bytes)
      : query_(query), max_bytes_(max_bytes) {}

  void Clear() {
    rows_.clear();
    bytes_ = 0;
    full_ = false;
  }
  // How many rows to ask for.
  size_t limit() const { return max_rows() + 1 - rows_.size(); }
  bool full() const { return full_; }
  // REQUIRES: it is not full.
  void Add(PageCursor cursor, absl::string_view bytes) {
    bytes_ += bytes.size();
    full_ =
        rows_.size() == max_rows() || (bytes_ > max_bytes_ && !rows_.empty());
    if (!full_) rows_.push_back({std::move(cursor), std::string(bytes)});
  }
  const std::vector<ListRow>& rows() const { return rows_; }
  // Empty when nothing follows.
  std::string NextPageToken() const {
    return full_ ? query_.NextPageToken(rows_.back().cursor) : "";
  }

 private:
  size_t max_rows() const { return static_cast<size_t>(query_.page_size()); }

  const ListQuery& query_;
  const size_t max_bytes_;
  std::vector<ListRow> rows_;
  size_t bytes_ = 0;
  bool full_ = false;
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

  // Adds rows to the page until it is full.
  absl::Status Read(Database* db, PageRows* page) {
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
    list.BindInt(++index, static_cast<int64_t>(page->limit()));
    while (!page->full()) {
      CUBICML_ASSIGN_OR_RETURN(const bool found, list.Step());
      if (!found) break;
      page->Add({KeyOf(list, 0, type_), list.Int(1)}, list.Blob(2));
    }
    return absl::OkStatus();
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

absl::Status ReadRows(Database* db, const ListSource& source,
                      const ListQuery& query, PageRows* page) {
  page->Clear();
  const bool past_keys =
      query.cursor().has_value() &&
      std::holds_alternative<std::monostate>(query.cursor()->key);
  if (!past_keys) {
    CUBICML_RETURN_IF_ERROR(ListHalf(source, query, true).Read(db, page));
  }
  if (!page->full() && MayBeMissing(*query.order().field)) {
    CUBICML_RETURN_IF_ERROR(ListHalf(source, query, false).Read(db, page));
  }
  return absl::OkStatus();
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
  PageRows read(query, options.max_bytes);
  CUBICML_RETURN_IF_ERROR(ReadLong(options.check, [&](Database* db) {
    return ReadRows(db, source, query, &read);
  }));
  StudyPage page;
  page.next_page_token = read.NextPageToken();
  for (const ListRow& row : read.rows()) {
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
  PageRows read(query, options.max_bytes);
  CUBICML_RETURN_IF_ERROR(ReadLong(options.check, [&](Database* db) {
    return ReadRows(db, source, query, &read);
  }));
  TrialPage page;
  page.next_page_token = read.NextPageToken();
  for (const ListRow& row : read.rows()) {
    CUBICML_RETURN_IF_ERROR(ParseInto(row.bytes, &page.trials.emplace_back()));
  }
  return page;
}

// In pages of one moment each: a reader that stays would keep the log from
// being emptied, and `visit` may take its time or call the store.
absl::Status SqliteStudyStore::ScanTrials(
    StudyId study, const ScanOptions& options,
    const std::function<absl::Status(v1::Trial&&)>& visit) {
  CUBICML_ASSIGN_OR_RETURN(const Filter parsed,
                           ParseTrialFilter(options.filter));
  const SqlCondition condition = parsed.ToSql();
  const std::string sql = absl::StrCat(
      "SELECT number, trial FROM trials WHERE study_id = ?1 AND number > ?2 "
      "AND ",
      condition.sql, " ORDER BY number LIMIT ", kScanPageTrials);
  int64_t last = options.after.value;
  std::vector<std::string> page;
  do {
    page.clear();
    const auto read_page = [&](Database* db) -> absl::Status {
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
    };
    CUBICML_RETURN_IF_ERROR(ReadLong(options.check, read_page));
    for (const std::string& bytes : page) {
      v1::Trial trial;
      CUBICML_RETURN_IF_ERROR(ParseInto(bytes, &trial));
      CUBICML_RETURN_IF_ERROR(visit(std::move(trial)));
    }
  } while (page.size() == kScanPageTrials);
  return absl::OkStatus();
}

}  // namespace cubicml
