// SPDX-License-Identifier: Apache-2.0
//
// Opening and closing, and the studies.

#include "storage/sqlite_study_store.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/proto_time.h"
#include "storage/schema.h"
#include "storage/sqlite_requests.h"
#include "storage/store_errors.h"
#include "storage/trial_row.h"

namespace cubicml {
namespace {

// The same file by whatever path it is named, so that it has one lock.
std::string CanonicalPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

// Before the check the file must not be touched: it may be someone else's.
absl::StatusOr<Database> OpenWriter(const SqliteStudyStore::Options& options,
                                    const std::string& path) {
  Database::Options open;
  open.path = path.empty() ? ":memory:" : path;
  open.vfs = options.vfs;
  open.busy_timeout = options.busy_timeout;
  CUBICML_ASSIGN_OR_RETURN(Database db, Database::Open(open));
  CUBICML_RETURN_IF_ERROR(CheckSchema(&db, open.path, Migrations()));
  if (!path.empty()) {
    CUBICML_ASSIGN_OR_RETURN(const std::string mode,
                             db.QueryText("PRAGMA journal_mode = WAL"));
    if (mode != "wal") {
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": its file system cannot hold a write-ahead log"));
    }
  }
  CUBICML_RETURN_IF_ERROR(db.Execute(
      absl::StrCat("PRAGMA synchronous = ", options.durable ? "FULL" : "OFF",
                   "; PRAGMA secure_delete = OFF; PRAGMA cache_size = -32000"
                   "; PRAGMA journal_size_limit = 67108864"
                   "; PRAGMA temp_store = MEMORY")));
  CUBICML_RETURN_IF_ERROR(
      MigrateSchema(&db, open.path, Migrations(), *options.clock));
  // After the migrations, which may have to break references for a moment.
  CUBICML_RETURN_IF_ERROR(db.Execute("PRAGMA foreign_keys = ON"));
  return db;
}

CommitQueue::Options QueueOptions(const SqliteStudyStore::Options& options) {
  CommitQueue::Options queue;
  queue.clock = options.clock;
  queue.observer = options.observer;
  queue.max_queue = options.max_queue;
  queue.probe_interval = options.disk_probe_interval;
  queue.busy_timeout = options.busy_timeout;
  return queue;
}

absl::StatusOr<StoredStudy> ParseStudy(int64_t id, absl::string_view bytes) {
  StoredStudy stored;
  stored.id = StudyId{id};
  if (!stored.study.ParseFromArray(bytes.data(),
                                   static_cast<int>(bytes.size()))) {
    return absl::DataLossError(
        absl::StrCat("the study with id ", id, " cannot be read"));
  }
  return stored;
}

std::string GoalName(const v1::Study& study) {
  if (study.objectives().empty()) return "";
  return v1::Goal_Name(study.objectives(0).goal());
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStudyStore>> SqliteStudyStore::Open(
    const Options& options) {
  CUBICML_CHECK(options.clock != nullptr);
  const std::string path =
      options.path.empty() ? "" : CanonicalPath(options.path);
  std::optional<FileLock> lock;
  if (!path.empty()) {
    CUBICML_ASSIGN_OR_RETURN(
        FileLock acquired,
        FileLock::Acquire(absl::StrCat(path, ".lock"), options.lock_wait));
    lock.emplace(std::move(acquired));
  }
  CUBICML_ASSIGN_OR_RETURN(Database writer, OpenWriter(options, path));
  std::unique_ptr<ReaderPool> readers;
  if (!path.empty()) {
    Database::Options read;
    read.path = path;
    read.access = Database::Access::kReadOnly;
    read.vfs = options.vfs;
    read.busy_timeout = options.busy_timeout;
    CUBICML_ASSIGN_OR_RETURN(readers, ReaderPool::Open(read, options.readers));
  }
  std::unique_ptr<SqliteStudyStore> store(new SqliteStudyStore(
      options, std::move(lock), std::move(writer), std::move(readers)));
  const absl::Status finished = store->FinishDeletes();
  if (!finished.ok()) {
    CUBICML_LOG(WARNING) << "trials of deleted studies are left for now"
                         << Field("why", finished.ToString());
  }
  return store;
}

SqliteStudyStore::SqliteStudyStore(const Options& options,
                                   std::optional<FileLock> lock,
                                   Database writer,
                                   std::unique_ptr<ReaderPool> readers)
    : clock_(options.clock),
      lock_(std::move(lock)),
      readers_(std::move(readers)),
      queue_(std::move(writer), QueueOptions(options)) {}

SqliteStudyStore::~SqliteStudyStore() { Close().IgnoreError(); }

absl::Status SqliteStudyStore::Close() {
  // Readers first: the log cannot be emptied while one holds it.
  if (readers_ != nullptr) readers_->Close();
  return queue_.Close();
}

absl::Status SqliteStudyStore::Read(
    absl::FunctionRef<absl::Status(Database*)> read) {
  return readers_ != nullptr ? readers_->Read(read) : queue_.Apply(read);
}

absl::Status SqliteStudyStore::ReadLong(
    const ReadCheck& check, absl::FunctionRef<absl::Status(Database*)> read) {
  if (readers_ != nullptr) return readers_->ReadLong(check, read);
  return queue_.Apply(
      [&](Database* db) { return ReadChecked(db, check, read); });
}

int64_t SqliteStudyStore::NowMicros() const {
  return absl::ToUnixMicros(clock_->Now());
}

int SqliteStudyStore::OptimisticTries() const {
  // In memory a read is a turn in the queue like a write: try there at once.
  return readers_ != nullptr ? 3 : 0;
}

absl::Status SqliteStudyStore::WriteHealth() const {
  return queue_.WriteHealth();
}

// ---- CreateStudy ----

constexpr absl::string_view kInsertStudySql =
    "INSERT INTO studies (name, display_name, objective, goal, "
    "create_time_us, update_time_us, revision, next_trial_number, labels) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1, 1, ?6)";
constexpr absl::string_view kInsertDefinitionSql =
    "INSERT INTO study_definitions (study_id, definition) VALUES (?1, ?2)";

namespace {

absl::StatusOr<int64_t> InsertStudy(Database* db, const v1::Study& study,
                                    int64_t now_us) {
  const std::string objective = FirstObjective(study);
  const std::string goal = GoalName(study);
  const std::string labels = FormatLabels(study);
  CUBICML_ASSIGN_OR_RETURN(Statement insert, db->Cached(kInsertStudySql));
  insert.BindText(1, study.name());
  insert.BindText(2, study.display_name());
  insert.BindText(3, objective);
  insert.BindText(4, goal);
  insert.BindInt(5, now_us);
  insert.BindText(6, labels);
  const absl::Status status = insert.Run();
  if (absl::IsAlreadyExists(status)) return StudyExistsError(study.name());
  CUBICML_RETURN_IF_ERROR(status);
  return db->LastInsertId();
}

std::string FormatEtag(int64_t id, int64_t revision) {
  return absl::StrCat(id, "-", revision);  // as the column
}

}  // namespace

absl::StatusOr<StoredStudy> SqliteStudyStore::CreateStudy(
    const v1::Study& study, const RequestKey& key) {
  CUBICML_RETURN_IF_ERROR(CheckStudyStrings(study));
  const int64_t now_us = NowMicros();
  StoredStudy stored{{}, study};
  stored.study.clear_progress();
  SetTimestamp(now_us, stored.study.mutable_create_time());
  SetTimestamp(now_us, stored.study.mutable_update_time());
  const absl::Status written = queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(const std::optional<RequestAnswer> answered,
                             FindRequest(db, key));
    if (answered.has_value()) {
      CUBICML_ASSIGN_OR_RETURN(
          stored, ParseStudy(answered->study_id.value_or(0), answered->answer));
      return absl::OkStatus();
    }
    CUBICML_ASSIGN_OR_RETURN(const int64_t id,
                             InsertStudy(db, stored.study, now_us));
    stored.id = StudyId{id};
    stored.study.set_etag(FormatEtag(id, 1));
    RequestAnswer answer;
    answer.study_id = id;
    stored.study.SerializeToString(&answer.answer);
    CUBICML_ASSIGN_OR_RETURN(Statement insert,
                             db->Cached(kInsertDefinitionSql));
    insert.BindInt(1, id);
    insert.BindBlob(2, answer.answer);
    CUBICML_RETURN_IF_ERROR(insert.Run());
    return InsertRequest(db, key, now_us, answer);
  });
  CUBICML_RETURN_IF_ERROR(written);
  return stored;
}

// ---- GetStudy ----

constexpr absl::string_view kGetStudySql =
    "SELECT id, revision, definition FROM studies JOIN study_definitions "
    "ON study_id = id WHERE name = ?1";

namespace {

struct StudyRow {
  int64_t id = 0;
  int64_t revision = 0;
  std::string definition;
};

absl::StatusOr<StudyRow> ReadStudy(Database* db, absl::string_view name) {
  CUBICML_ASSIGN_OR_RETURN(Statement get, db->Cached(kGetStudySql));
  get.BindText(1, name);
  CUBICML_ASSIGN_OR_RETURN(const bool found, get.Step());
  if (!found) return StudyNotFoundError(name);
  return StudyRow{get.Int(0), get.Int(1), std::string(get.Blob(2))};
}

}  // namespace

absl::StatusOr<StoredStudy> SqliteStudyStore::GetStudy(absl::string_view name) {
  StudyRow row;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(row, ReadStudy(db, name));
    return absl::OkStatus();
  });
  CUBICML_RETURN_IF_ERROR(read);
  return ParseStudy(row.id, row.definition);
}

// ---- UpdateStudy ----

constexpr absl::string_view kUpdateStudySql =
    "UPDATE studies SET display_name = ?3, objective = ?4, goal = ?5, "
    "update_time_us = ?6, labels = ?7, revision = revision + 1 "
    "WHERE id = ?1 AND revision = ?2";
constexpr absl::string_view kUpdateDefinitionSql =
    "UPDATE study_definitions SET definition = ?2 WHERE study_id = ?1";
// When a study gets another first objective.
constexpr absl::string_view kUpdateObjectivesSql =
    "UPDATE trials SET objective = (SELECT CAST(atom AS REAL) "
    "FROM json_each(metrics) WHERE key = ?2) WHERE study_id = ?1";

namespace {

// An update of a study: what was read, what it becomes, how it went.
struct StudyChange {
  StudyRow before;
  std::optional<RequestAnswer> answered;  // carried out earlier
  StoredStudy after;
  std::string definition;
  bool objective_changed = false;
  bool conflict = false;  // somebody was faster
};

absl::Status ReadForUpdate(Database* db, absl::string_view name,
                           const RequestKey& key, StudyChange* change) {
  CUBICML_ASSIGN_OR_RETURN(change->answered, FindRequest(db, key));
  if (change->answered.has_value()) return absl::OkStatus();
  CUBICML_ASSIGN_OR_RETURN(change->before, ReadStudy(db, name));
  return absl::OkStatus();
}

absl::Status MakeChange(const StudyStore::StudyMutation& mutation,
                        int64_t now_us, StudyChange* change) {
  const StudyRow& before = change->before;
  CUBICML_ASSIGN_OR_RETURN(change->after,
                           ParseStudy(before.id, before.definition));
  v1::Study& study = change->after.study;
  const std::string name = study.name();
  const google::protobuf::Timestamp create_time = study.create_time();
  const std::string objective = FirstObjective(study);
  CUBICML_RETURN_IF_ERROR(mutation(&study));
  CUBICML_RETURN_IF_ERROR(CheckStudyStrings(study));
  study.set_name(name);
  study.clear_progress();
  *study.mutable_create_time() = create_time;
  SetTimestamp(now_us, study.mutable_update_time());
  study.set_etag(FormatEtag(before.id, before.revision + 1));
  change->objective_changed = FirstObjective(study) != objective;
  study.SerializeToString(&change->definition);
  return absl::OkStatus();
}

absl::Status WriteChange(Database* db, const RequestKey& key, int64_t now_us,
                         StudyChange* change) {
  const v1::Study& study = change->after.study;
  const std::string objective = FirstObjective(study);
  const std::string goal = GoalName(study);
  const std::string labels = FormatLabels(study);
  CUBICML_ASSIGN_OR_RETURN(Statement update, db->Cached(kUpdateStudySql));
  update.BindInt(1, change->before.id);
  update.BindInt(2, change->before.revision);
  update.BindText(3, study.display_name());
  update.BindText(4, objective);
  update.BindText(5, goal);
  update.BindInt(6, now_us);
  update.BindText(7, labels);
  CUBICML_RETURN_IF_ERROR(update.Run());
  change->conflict = db->Changes() == 0;
  if (change->conflict) return absl::AbortedError("the study has changed");
  CUBICML_ASSIGN_OR_RETURN(Statement define, db->Cached(kUpdateDefinitionSql));
  define.BindInt(1, change->before.id);
  define.BindBlob(2, change->definition);
  CUBICML_RETURN_IF_ERROR(define.Run());
  if (change->objective_changed) {
    CUBICML_ASSIGN_OR_RETURN(Statement trials,
                             db->Cached(kUpdateObjectivesSql));
    trials.BindInt(1, change->before.id);
    trials.BindText(2, objective);
    CUBICML_RETURN_IF_ERROR(trials.Run());
  }
  RequestAnswer answer;
  answer.study_id = change->before.id;
  if (!key.id.empty()) answer.answer = change->definition;
  return InsertRequest(db, key, now_us, answer);
}

absl::StatusOr<StoredStudy> AnswerOf(StudyChange change) {
  if (!change.answered.has_value()) return std::move(change.after);
  return ParseStudy(change.answered->study_id.value_or(0),
                    change.answered->answer);
}

}  // namespace

absl::StatusOr<StoredStudy> SqliteStudyStore::UpdateStudy(
    absl::string_view name, const StudyMutation& mutation,
    const RequestKey& key) {
  for (int i = 0; i < OptimisticTries(); ++i) {
    const int64_t now_us = NowMicros();
    StudyChange change;
    const absl::Status read = Read(
        [&](Database* db) { return ReadForUpdate(db, name, key, &change); });
    CUBICML_RETURN_IF_ERROR(read);
    if (change.answered.has_value()) return AnswerOf(std::move(change));
    CUBICML_RETURN_IF_ERROR(MakeChange(mutation, now_us, &change));
    const absl::Status status = queue_.Apply(
        [&](Database* db) { return WriteChange(db, key, now_us, &change); });
    if (status.ok()) return AnswerOf(std::move(change));
    // The request may have been carried out meanwhile, by a twin.
    if (!change.conflict && !absl::IsAlreadyExists(status)) return status;
  }
  StudyChange change;
  const absl::Status written = queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_RETURN_IF_ERROR(ReadForUpdate(db, name, key, &change));
    if (change.answered.has_value()) return absl::OkStatus();
    const int64_t now_us = NowMicros();
    CUBICML_RETURN_IF_ERROR(MakeChange(mutation, now_us, &change));
    return WriteChange(db, key, now_us, &change);
  });
  CUBICML_RETURN_IF_ERROR(written);
  return AnswerOf(std::move(change));
}

}  // namespace cubicml
