// SPDX-License-Identifier: Apache-2.0

#include "storage/sqlite_requests.h"

#include "base/status_macros.h"
#include "storage/sqlite_study_store.h"
#include "storage/store_errors.h"

namespace cubicml {
namespace {

std::optional<int64_t> OptionalInt(const Statement& row, int column) {
  if (row.IsNull(column)) return std::nullopt;
  return row.Int(column);
}

}  // namespace

constexpr absl::string_view kFindRequestSql =
    "SELECT method, fingerprint, study_id, first_trial, trial_count, answer "
    "FROM requests WHERE id = ?1";

absl::StatusOr<std::optional<RequestAnswer>> FindRequest(
    Database* db, const RequestKey& key) {
  if (key.id.empty()) return std::nullopt;
  CUBICML_ASSIGN_OR_RETURN(Statement find, db->Cached(kFindRequestSql));
  find.BindText(1, key.id);
  CUBICML_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return std::nullopt;
  if (find.Text(0) != key.method ||
      find.Int(1) != static_cast<int64_t>(key.fingerprint)) {
    return RequestIdTakenError(find.Text(0));
  }
  RequestAnswer answer;
  answer.study_id = OptionalInt(find, 2);
  answer.first_trial = OptionalInt(find, 3);
  answer.trial_count = OptionalInt(find, 4);
  answer.answer = std::string(find.Blob(5));
  return answer;
}

constexpr absl::string_view kInsertRequestSql =
    "INSERT INTO requests (id, method, fingerprint, create_time_us, study_id, "
    "first_trial, trial_count, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

absl::Status InsertRequest(Database* db, const RequestKey& key, int64_t now_us,
                           const RequestAnswer& answer) {
  if (key.id.empty()) return absl::OkStatus();
  CUBICML_ASSIGN_OR_RETURN(Statement insert, db->Cached(kInsertRequestSql));
  insert.BindText(1, key.id);
  insert.BindText(2, key.method);
  insert.BindInt(3, static_cast<int64_t>(key.fingerprint));
  insert.BindInt(4, now_us);
  insert.BindOptional(5, answer.study_id);
  insert.BindOptional(6, answer.first_trial);
  insert.BindOptional(7, answer.trial_count);
  insert.BindBlob(8, answer.answer);
  return insert.Run();
}

// In pieces, so that other changes go between.
constexpr absl::string_view kDeleteRequestsSql =
    "DELETE FROM requests WHERE rowid IN (SELECT rowid FROM requests "
    "WHERE create_time_us < ?1 LIMIT 1000)";

absl::StatusOr<int64_t> SqliteStudyStore::DeleteRequestsBefore(
    absl::Time before) {
  int64_t total = 0;
  int64_t deleted = 0;
  do {
    const absl::Status written =
        queue_.Apply([&](Database* db) -> absl::Status {
          CUBICML_ASSIGN_OR_RETURN(Statement erase,
                                   db->Cached(kDeleteRequestsSql));
          erase.BindInt(1, absl::ToUnixMicros(before));
          CUBICML_RETURN_IF_ERROR(erase.Run());
          deleted = db->Changes();
          return absl::OkStatus();
        });
    CUBICML_RETURN_IF_ERROR(written);
    total += deleted;
  } while (deleted > 0);
  return total;
}

}  // namespace cubicml
