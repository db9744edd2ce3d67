// SPDX-License-Identifier: Apache-2.0
//
// SQLite's C API with owners and absl::Status. The only users of sqlite3.h in
// this folder are sqlite_db.cc and what implements a VFS in tests.

#ifndef CUBICML_STORAGE_SQLITE_DB_H_
#define CUBICML_STORAGE_SQLITE_DB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/filter.h"

struct sqlite3;
struct sqlite3_stmt;

namespace cubicml {

// What an error of the database means for what comes after it.
enum class DatabaseFailure {
  kNone,      // not the database's, or of this statement alone
  kDiskFull,  // passes when space returns
  kFatal,     // the file or the disk is broken: stop writing
};
DatabaseFailure ClassifyFailure(const absl::Status& status);

// Status for an extended result code of SQLite; OK for SQLITE_OK. `context`
// says what was tried. Of another's lock it says when to try again.
absl::Status SqliteError(int extended_code, absl::string_view context,
                         absl::string_view detail);

class Database;

// A prepared statement in use. Not thread-safe; must not outlive its database.
// Errors of Bind… are told by the next Step() or Run(). Parameters count from
// 1, columns from 0. Bound text and blobs are not copied: they must live until
// the last Step().
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();  // resets it, gives it back

  void BindInt(int index, int64_t value);
  void BindReal(int index, double value);
  void BindText(int index, absl::string_view value);
  void BindBlob(int index, absl::string_view value);
  void BindNull(int index);
  void BindOptional(int index, const std::optional<int64_t>& value);
  void BindOptional(int index, const std::optional<double>& value);
  void BindValue(int index, const FilterValue& value);

  // True: a row is there. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement whose rows, if any, do not matter.
  absl::Status Run();
  // Makes it ready to be bound and run again.
  void Reset();

  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  // Valid until the next Step(), Reset() or destruction.
  absl::string_view Text(int column) const;
  absl::string_view Blob(int column) const;

 private:
  friend class Database;
  Statement(sqlite3_stmt* stmt, bool* in_use) : stmt_(stmt), in_use_(in_use) {}
  void NoteBind(int code);

  sqlite3_stmt* stmt_;  // owned when in_use_ is null
  bool* in_use_;        // of a cached one; false again when given back
  int bind_error_ = 0;  // the first
};

// A connection. Not thread-safe: one thread at a time.
class Database {
 public:
  enum class Access { kReadOnly, kReadWrite };
  struct Options {
    std::string path;  // ":memory:" for one in memory
    Access access = Access::kReadWrite;
    std::string vfs = {};  // name of a registered VFS; empty: the default
    // How long to wait for another process's lock.
    absl::Duration busy_timeout = absl::Seconds(5);
  };

  static absl::StatusOr<Database> Open(const Options& options);
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  // Runs statements that take no parameters.
  absl::Status Execute(absl::string_view sql);
  // For SQL that is built: prepared now, finalized by the owner.
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // For SQL constants: prepared once and kept. REQUIRES: the one before of the
  // same text was given back.
  absl::StatusOr<Statement> Cached(absl::string_view sql);
  // The single value of a query that gives one.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  absl::StatusOr<std::string> QueryText(absl::string_view sql);

  // Whether a transaction is open. SQLite ends one by itself after some
  // errors.
  bool InTransaction() const;
  // Rows that the last INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;
  int64_t LastInsertId() const;

  // Frames in the write-ahead log after the last commit of this connection.
  int64_t wal_frames() const { return *wal_frames_; }
  // From now on commits never checkpoint by themselves: a checkpoint that
  // fails would make a commit that succeeded look failed.
  void DisableAutoCheckpoint();
  // Copies the log into the database without waiting for readers; with
  // `truncate` it waits, and empties the log.
  absl::Status Checkpoint(bool truncate);
  void SetBusyTimeout(absl::Duration timeout);
  // While statements run, `interrupt` is asked now and then; true ends them
  // with an error. Null: they run to their end. Not owned.
  void SetInterrupt(std::function<bool()>* interrupt);

 private:
  struct CachedStatement {
    sqlite3_stmt* stmt = nullptr;
    bool in_use = false;
  };
  explicit Database(sqlite3* db);
  absl::StatusOr<sqlite3_stmt*> PrepareRaw(absl::string_view sql,
                                           unsigned int flags);

  sqlite3* db_;
  std::unique_ptr<int64_t> wal_frames_;  // SQLite holds its address
  absl::flat_hash_map<std::string, std::unique_ptr<CachedStatement>> cache_;
};

// Runs `read`, whose statements ask `check` (null: nothing) before the first
// and every few thousand steps of SQLite's machine. Its first error interrupts
// them, and is what is returned.
absl::Status ReadChecked(Database* db,
                         const std::function<absl::Status()>& check,
                         absl::FunctionRef<absl::Status(Database*)> read);

// A transaction inside a transaction that is undone unless it is released.
class Savepoint {
 public:
  static absl::StatusOr<Savepoint> Begin(Database* db);
  Savepoint(Savepoint&& other) noexcept : db_(other.db_) {
    other.db_ = nullptr;
  }
  Savepoint& operator=(Savepoint&&) = delete;
  ~Savepoint();

  absl::Status Release();

 private:
  explicit Savepoint(Database* db) : db_(db) {}
  Database* db_;  // null: released or moved
};

// A transaction that is rolled back unless it is committed.
class Transaction {
 public:
  // For reading: everything is seen as of one moment.
  static absl::StatusOr<Transaction> BeginRead(Database* db);
  // For writing; takes the write lock at once.
  static absl::StatusOr<Transaction> BeginImmediate(Database* db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) {
    other.db_ = nullptr;
  }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;  // null: committed or moved
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_SQLITE_DB_H_
