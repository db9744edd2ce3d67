// SPDX-License-Identifier: Apache-2.0
//
// Deleting studies. One with many trials would hold up every other change for
// as long as it takes to delete them: it is set aside first, where nobody finds
// it any more, and its trials go piece by piece.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/sqlite_requests.h"
#include "storage/sqlite_study_store.h"
#include "storage/store_errors.h"

namespace cubicml {
namespace {

constexpr absl::string_view kFindStudySql =
    "SELECT id, etag FROM studies WHERE name = ?1";
constexpr absl::string_view kCountHeldTrialsSql =
    "SELECT count(*) FROM trials WHERE study_id = ?1 "
    "AND state IN ('ACTIVE', 'STOPPING')";
// No study can be named like that; and without a definition no list shows it.
constexpr absl::string_view kSetAsideSql =
    "UPDATE studies SET name = 'deleted/' || id WHERE id = ?1";
constexpr absl::string_view kDeleteDefinitionSql =
    "DELETE FROM study_definitions WHERE study_id = ?1";
constexpr absl::string_view kFindSetAsideSql =
    "SELECT id FROM studies WHERE name >= 'deleted/' AND name < 'deleted0' "
    "LIMIT 1";
constexpr absl::string_view kDeleteTrialsSql =
    "DELETE FROM trials WHERE study_id = ?1 AND number IN (SELECT number "
    "FROM trials WHERE study_id = ?1 ORDER BY number LIMIT ?2)";
constexpr int64_t kPieceTrials = 1000;
constexpr absl::string_view kDeleteStudySql =
    "DELETE FROM studies WHERE id = ?1";

absl::Status RunForStudy(Database* db, absl::string_view sql, int64_t id) {
  CUBICML_ASSIGN_OR_RETURN(Statement statement, db->Cached(sql));
  statement.BindInt(1, id);
  return statement.Run();
}

// Deletes some trials of a study, and the study with the last of them. Returns
// whether it is gone.
absl::StatusOr<bool> DeletePiece(Database* db, int64_t id) {
  CUBICML_ASSIGN_OR_RETURN(Statement piece, db->Cached(kDeleteTrialsSql));
  piece.BindInt(1, id);
  piece.BindInt(2, kPieceTrials);
  CUBICML_RETURN_IF_ERROR(piece.Run());
  if (db->Changes() == kPieceTrials) return false;
  CUBICML_RETURN_IF_ERROR(RunForStudy(db, kDeleteStudySql, id));
  return true;
}

// The id of the study; NOT_FOUND, ABORTED or FAILED_PRECONDITION as the store.
absl::StatusOr<int64_t> FindDeletable(Database* db, absl::string_view name,
                                      absl::string_view etag, bool force) {
  CUBICML_ASSIGN_OR_RETURN(Statement find, db->Cached(kFindStudySql));
  find.BindText(1, name);
  CUBICML_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return StudyNotFoundError(name);
  const int64_t id = find.Int(0);
  if (!etag.empty() && find.Text(1) != etag) return StaleEtagError(name);
  CUBICML_ASSIGN_OR_RETURN(Statement count, db->Cached(kCountHeldTrialsSql));
  count.BindInt(1, id);
  CUBICML_RETURN_IF_ERROR(count.Step().status());
  const int64_t held = count.Int(0);
  if (held > 0 && !force) return StudyInUseError(name, held);
  return id;
}

}  // namespace

absl::Status SqliteStudyStore::DeleteStudy(absl::string_view name,
                                           absl::string_view etag, bool force,
                                           const RequestKey& key) {
  const int64_t now_us = NowMicros();
  std::optional<int64_t> set_aside;
  const absl::Status written = queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(const std::optional<RequestAnswer> answered,
                             FindRequest(db, key));
    if (answered.has_value()) return absl::OkStatus();
    CUBICML_ASSIGN_OR_RETURN(const int64_t id,
                             FindDeletable(db, name, etag, force));
    CUBICML_RETURN_IF_ERROR(RunForStudy(db, kSetAsideSql, id));
    CUBICML_RETURN_IF_ERROR(RunForStudy(db, kDeleteDefinitionSql, id));
    CUBICML_ASSIGN_OR_RETURN(const bool gone, DeletePiece(db, id));
    if (!gone) set_aside = id;
    return InsertRequest(db, key, now_us, {});
  });
  CUBICML_RETURN_IF_ERROR(written);
  if (!set_aside.has_value()) return absl::OkStatus();
  const absl::Status emptied = DeleteSetAside(*set_aside);
  if (!emptied.ok()) {
    // The study is gone for everybody; the next start takes what is left.
    CUBICML_LOG(WARNING) << "trials of a deleted study are left for now"
                         << Field("study", name)
                         << Field("why", emptied.ToString());
  }
  return absl::OkStatus();
}

absl::Status SqliteStudyStore::DeleteSetAside(int64_t id) {
  bool gone = false;
  while (!gone) {
    const absl::Status written =
        queue_.Apply([&](Database* db) -> absl::Status {
          CUBICML_ASSIGN_OR_RETURN(gone, DeletePiece(db, id));
          return absl::OkStatus();
        });
    CUBICML_RETURN_IF_ERROR(written);
  }
  return absl::OkStatus();
}

absl::Status SqliteStudyStore::FinishDeletes() {
  while (true) {
    std::optional<int64_t> id;
    const absl::Status read = Read([&](Database* db) -> absl::Status {
      CUBICML_ASSIGN_OR_RETURN(Statement find, db->Cached(kFindSetAsideSql));
      CUBICML_ASSIGN_OR_RETURN(const bool found, find.Step());
      if (found) id = find.Int(0);
      return absl::OkStatus();
    });
    CUBICML_RETURN_IF_ERROR(read);
    if (!id.has_value()) return absl::OkStatus();
    CUBICML_RETURN_IF_ERROR(DeleteSetAside(*id));
  }
}

}  // namespace cubicml
