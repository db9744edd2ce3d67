// SPDX-License-Identifier: Apache-2.0

#include "storage/schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

absl::StatusOr<int64_t> SchemaVersion(Database* db) {
  return db->QueryInt("PRAGMA user_version");
}

absl::Status Backup(Database* db, absl::string_view path, int64_t version,
                    const Clock& clock) {
  const std::string backup = absl::StrCat(
      path, ".v", version, "-",
      absl::FormatTime("%Y%m%dT%H%M%E6SZ", clock.Now(), absl::UTCTimeZone()),
      ".backup");
  CUBICML_ASSIGN_OR_RETURN(Statement vacuum, db->Prepare("VACUUM INTO ?1"));
  vacuum.BindText(1, backup);
  CUBICML_RETURN_IF_ERROR(
      WithContext(vacuum.Run(), absl::StrCat("copying the database to ", backup,
                                             " before migrating it")));
  CUBICML_LOG(INFO) << "database copied before its migration"
                    << Field("backup", backup);
  return absl::OkStatus();
}

absl::Status CheckForeignKeys(Database* db) {
  CUBICML_ASSIGN_OR_RETURN(Statement check,
                           db->Prepare("PRAGMA foreign_key_check"));
  CUBICML_ASSIGN_OR_RETURN(const bool broken, check.Step());
  if (!broken) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "rows of table ", check.Text(0), " refer to rows that are not there"));
}

absl::Status Apply(Database* db, const Migration& migration) {
  CUBICML_ASSIGN_OR_RETURN(Transaction transaction,
                           Transaction::BeginImmediate(db));
  CUBICML_RETURN_IF_ERROR(db->Execute(migration.sql));
  CUBICML_RETURN_IF_ERROR(
      db->Execute(absl::StrCat("PRAGMA application_id = ", kApplicationId,
                               "; PRAGMA user_version = ", migration.version)));
  CUBICML_RETURN_IF_ERROR(CheckForeignKeys(db));
  return transaction.Commit();
}

}  // namespace

absl::Status CheckSchema(Database* db, absl::string_view path,
                         std::span<const Migration> migrations) {
  CUBICML_ASSIGN_OR_RETURN(const int64_t application,
                           db->QueryInt("PRAGMA application_id"));
  CUBICML_ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(db));
  CUBICML_ASSIGN_OR_RETURN(const int64_t objects,
                           db->QueryInt("SELECT count(*) FROM sqlite_schema"));
  const bool is_new = application == 0 && version == 0 && objects == 0;
  if (is_new) return absl::OkStatus();
  if (application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a database of another program (application_id ",
                     application, "): name another file"));
  }
  const int64_t newest = migrations.empty() ? 0 : migrations.back().version;
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has schema version ", version,
        " and this program knows versions up to ", newest,
        ": start the newer program that wrote it, or restore the backup ", path,
        ".v", newest, "-*.backup that it made"));
  }
  return absl::OkStatus();
}

absl::Status MigrateSchema(Database* db, absl::string_view path,
                           std::span<const Migration> migrations,
                           const Clock& clock) {
  CUBICML_RETURN_IF_ERROR(CheckSchema(db, path, migrations));
  CUBICML_ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(db));
  const int64_t newest = migrations.empty() ? 0 : migrations.back().version;
  if (version > 0 && version < newest) {
    CUBICML_RETURN_IF_ERROR(Backup(db, path, version, clock));
  }
  for (const Migration& migration : migrations) {
    if (migration.version <= version) continue;
    CUBICML_RETURN_IF_ERROR(WithContext(
        Apply(db, migration), absl::StrCat("migration ", migration.name)));
    if (version == 0) continue;  // new files are no news
    CUBICML_LOG(INFO) << "database migrated"
                      << Field("migration", migration.name);
  }
  return absl::OkStatus();
}

}  // namespace cubicml
