// SPDX-License-Identifier: Apache-2.0

#include "storage/sqlite_db.h"

#include <sqlite3.h>

#include <utility>
#include <variant>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

// Payload of an error that came from SQLite: its extended code in decimal.
constexpr absl::string_view kCodePayloadUrl = "cubicml/sqlite_code";
constexpr absl::Duration kLockedRetry = absl::Seconds(1);
// About 50 us of work: an answer is hardly late, and asking costs nothing.
constexpr int kInterruptSteps = 2000;

// The one place where SQLite's codes get a meaning.
absl::StatusCode StatusCodeOf(int extended_code) {
  switch (extended_code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return absl::StatusCode::kAlreadyExists;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return absl::StatusCode::kFailedPrecondition;
    case SQLITE_IOERR_SHMSIZE:  // no space for the log's index
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (extended_code & 0xFF) {
    case SQLITE_OK:
      return absl::StatusCode::kOk;
    case SQLITE_BUSY:  // somebody else's lock: not ABORTED, which is an etag's
    case SQLITE_LOCKED:
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

bool IsLock(int extended_code) {
  const int code = extended_code & 0xFF;
  return code == SQLITE_BUSY || code == SQLITE_LOCKED;
}

absl::Status LastError(sqlite3* db, absl::string_view context) {
  return SqliteError(sqlite3_extended_errcode(db), context, sqlite3_errmsg(db));
}

int SizeOf(absl::string_view text) {
  // Longer than SQLite can hold; Bind refuses it as too big.
  constexpr size_t kTooBig = 2'000'000'000;
  return static_cast<int>(text.size() > kTooBig ? kTooBig : text.size());
}

// SQLite takes a null pointer for NULL, which an empty view may hold.
const char* Address(absl::string_view text) {
  return text.data() == nullptr ? "" : text.data();
}

}  // namespace

absl::Status SqliteError(int extended_code, absl::string_view context,
                         absl::string_view detail) {
  const absl::StatusCode code = StatusCodeOf(extended_code);
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  absl::Status status(
      code, absl::StrCat(context, ": ", detail, " (", extended_code, ")"));
  status.SetPayload(kCodePayloadUrl, absl::Cord(absl::StrCat(extended_code)));
  return IsLock(extended_code) ? WithRetryDelay(std::move(status), kLockedRetry)
                               : status;
}

DatabaseFailure ClassifyFailure(const absl::Status& status) {
  const auto payload = status.GetPayload(kCodePayloadUrl);
  int code = 0;
  if (status.ok() || !payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &code)) {
    return DatabaseFailure::kNone;
  }
  if (code == SQLITE_IOERR_SHMSIZE) return DatabaseFailure::kDiskFull;
  if (code == SQLITE_IOERR_NOMEM) return DatabaseFailure::kNone;
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return DatabaseFailure::kDiskFull;
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return DatabaseFailure::kFatal;
    default:
      return DatabaseFailure::kNone;
  }
}

// ---- Statement ----

Statement::Statement(Statement&& other) noexcept
    : stmt_(std::exchange(other.stmt_, nullptr)),
      in_use_(std::exchange(other.in_use_, nullptr)),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  if (in_use_ == nullptr) {
    sqlite3_finalize(stmt_);
    return;
  }
  Reset();
  *in_use_ = false;
}

void Statement::NoteBind(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::BindInt(int index, int64_t value) {
  NoteBind(sqlite3_bind_int64(stmt_, index, value));
}
void Statement::BindReal(int index, double value) {
  NoteBind(sqlite3_bind_double(stmt_, index, value));
}
void Statement::BindText(int index, absl::string_view value) {
  NoteBind(
      sqlite3_bind_text(stmt_, index, Address(value), SizeOf(value), nullptr));
}
void Statement::BindBlob(int index, absl::string_view value) {
  NoteBind(
      sqlite3_bind_blob(stmt_, index, Address(value), SizeOf(value), nullptr));
}
void Statement::BindNull(int index) {
  NoteBind(sqlite3_bind_null(stmt_, index));
}
void Statement::BindOptional(int index, const std::optional<int64_t>& value) {
  value.has_value() ? BindInt(index, *value) : BindNull(index);
}
void Statement::BindOptional(int index, const std::optional<double>& value) {
  value.has_value() ? BindReal(index, *value) : BindNull(index);
}
void Statement::BindValue(int index, const FilterValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    BindInt(index, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    BindReal(index, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    BindText(index, *text);
  } else {
    BindNull(index);
  }
}

absl::StatusOr<bool> Statement::Step() {
  sqlite3* const db = sqlite3_db_handle(stmt_);
  if (bind_error_ != SQLITE_OK) {
    return SqliteError(bind_error_, "binding", sqlite3_errstr(bind_error_));
  }
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return LastError(db, "database");
}

absl::Status Statement::Run() {
  bool more = true;
  while (more) {
    CUBICML_ASSIGN_OR_RETURN(more, Step());
  }
  return absl::OkStatus();
}

void Statement::Reset() {
  sqlite3_reset(stmt_);  // repeats the error of the last Step()
  sqlite3_clear_bindings(stmt_);
  bind_error_ = SQLITE_OK;
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}
int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(stmt_, column);
}
double Statement::Real(int column) const {
  return sqlite3_column_double(stmt_, column);
}
absl::string_view Statement::Text(int column) const {
  const auto* const bytes = sqlite3_column_text(stmt_, column);
  if (bytes == nullptr) return "";
  return {reinterpret_cast<const char*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}
absl::string_view Statement::Blob(int column) const {
  const void* const bytes = sqlite3_column_blob(stmt_, column);
  if (bytes == nullptr) return "";
  return {static_cast<const char*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}

// ---- Database ----

Database::Database(sqlite3* db)
    : db_(db), wal_frames_(std::make_unique<int64_t>(0)) {}

Database::Database(Database&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      wal_frames_(std::move(other.wal_frames_)),
      cache_(std::move(other.cache_)) {}

Database::~Database() {
  for (auto& [sql, cached] : cache_) sqlite3_finalize(cached->stmt);
  sqlite3_close_v2(db_);
}

absl::StatusOr<Database> Database::Open(const Options& options) {
  // Each connection is used by one thread at a time, so it needs no mutex.
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.access == Access::kReadOnly
                         ? SQLITE_OPEN_READONLY
                         : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(options.path.c_str(), &raw, flags,
                      options.vfs.empty() ? nullptr : options.vfs.c_str());
  Database db(raw);  // even when it failed there is something to close
  const std::string context = absl::StrCat("opening ", options.path);
  if (code != SQLITE_OK) {
    return SqliteError(code, context,
                       raw == nullptr ? "out of memory" : sqlite3_errmsg(raw));
  }
  db.SetBusyTimeout(options.busy_timeout);
  // A file that was made to harm cannot run code through its schema.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  return db;
}

absl::StatusOr<sqlite3_stmt*> Database::PrepareRaw(absl::string_view sql,
                                                   unsigned int flags) {
  sqlite3_stmt* stmt = nullptr;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), SizeOf(sql), flags, &stmt, nullptr);
  if (code != SQLITE_OK) return LastError(db_, "preparing SQL");
  CUBICML_CHECK(stmt != nullptr);
  return stmt;
}

absl::Status Database::Execute(absl::string_view sql) {
  const std::string text(sql);
  if (sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return LastError(db_, "database");
  }
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  CUBICML_ASSIGN_OR_RETURN(sqlite3_stmt * stmt, PrepareRaw(sql, 0));
  return Statement(stmt, nullptr);
}

absl::StatusOr<Statement> Database::Cached(absl::string_view sql) {
  std::unique_ptr<CachedStatement>& cached = cache_[sql];
  if (cached == nullptr) {
    absl::StatusOr<sqlite3_stmt*> stmt =
        PrepareRaw(sql, SQLITE_PREPARE_PERSISTENT);
    if (!stmt.ok()) {
      cache_.erase(sql);
      return stmt.status();
    }
    cached = std::make_unique<CachedStatement>();
    cached->stmt = *stmt;
  }
  CUBICML_CHECK(!cached->in_use);
  cached->in_use = true;
  return Statement(cached->stmt, &cached->in_use);
}

absl::StatusOr<int64_t> Database::QueryInt(absl::string_view sql) {
  CUBICML_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  CUBICML_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::StatusOr<std::string> Database::QueryText(absl::string_view sql) {
  CUBICML_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  CUBICML_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? std::string(statement.Text(0)) : "";
}

bool Database::InTransaction() const {
  return sqlite3_get_autocommit(db_) == 0;
}
int64_t Database::Changes() const { return sqlite3_changes64(db_); }
int64_t Database::LastInsertId() const {
  return sqlite3_last_insert_rowid(db_);
}

void Database::DisableAutoCheckpoint() {
  sqlite3_wal_hook(
      db_,
      [](void* frames, sqlite3* /*db*/, const char* /*name*/, int count) {
        *static_cast<int64_t*>(frames) = count;
        return SQLITE_OK;
      },
      wal_frames_.get());
}

absl::Status Database::Checkpoint(bool truncate) {
  const int code = sqlite3_wal_checkpoint_v2(
      db_, nullptr,
      truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
      nullptr, nullptr);
  if (code != SQLITE_OK) return LastError(db_, "checkpoint");
  if (truncate) *wal_frames_ = 0;
  return absl::OkStatus();
}

void Database::SetBusyTimeout(absl::Duration timeout) {
  sqlite3_busy_timeout(db_,
                       static_cast<int>(absl::ToInt64Milliseconds(timeout)));
}

void Database::SetInterrupt(std::function<bool()>* interrupt) {
  if (interrupt == nullptr) {
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
    return;
  }
  sqlite3_progress_handler(
      db_, kInterruptSteps,
      [](void* asked) {
        return (*static_cast<std::function<bool()>*>(asked))() ? 1 : 0;
      },
      interrupt);
}

absl::Status ReadChecked(Database* db,
                         const std::function<absl::Status()>& check,
                         absl::FunctionRef<absl::Status(Database*)> read) {
  if (check == nullptr) return read(db);
  CUBICML_RETURN_IF_ERROR(check());
  absl::Status why;
  std::function<bool()> interrupt = [&] {
    why = check();
    return !why.ok();
  };
  db->SetInterrupt(&interrupt);
  absl::Status status = read(db);
  db->SetInterrupt(nullptr);
  return why.ok() ? status : why;
}

// ---- Savepoint and Transaction ----

absl::StatusOr<Savepoint> Savepoint::Begin(Database* db) {
  CUBICML_ASSIGN_OR_RETURN(Statement begin, db->Cached("SAVEPOINT op"));
  CUBICML_RETURN_IF_ERROR(begin.Run());
  return Savepoint(db);
}

absl::Status Savepoint::Release() {
  CUBICML_ASSIGN_OR_RETURN(Statement release, db_->Cached("RELEASE op"));
  CUBICML_RETURN_IF_ERROR(release.Run());
  db_ = nullptr;
  return absl::OkStatus();
}

Savepoint::~Savepoint() {
  // Without a transaction SQLite has undone it all by itself.
  if (db_ == nullptr || !db_->InTransaction()) return;
  db_->Execute("ROLLBACK TO op; RELEASE op").IgnoreError();
}

absl::StatusOr<Transaction> Transaction::BeginRead(Database* db) {
  CUBICML_ASSIGN_OR_RETURN(Statement begin, db->Cached("BEGIN"));
  CUBICML_RETURN_IF_ERROR(begin.Run());
  return Transaction(db);
}

absl::StatusOr<Transaction> Transaction::BeginImmediate(Database* db) {
  CUBICML_ASSIGN_OR_RETURN(Statement begin, db->Cached("BEGIN IMMEDIATE"));
  CUBICML_RETURN_IF_ERROR(begin.Run());
  return Transaction(db);
}

absl::Status Transaction::Commit() {
  CUBICML_ASSIGN_OR_RETURN(Statement commit, db_->Cached("COMMIT"));
  CUBICML_RETURN_IF_ERROR(commit.Run());
  db_ = nullptr;
  return absl::OkStatus();
}

Transaction::~Transaction() {
  if (db_ == nullptr || !db_->InTransaction()) return;
  db_->Execute("ROLLBACK").IgnoreError();
}

}  // namespace cubicml
