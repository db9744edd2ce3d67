// SPDX-License-Identifier: Apache-2.0

#include "storage/sqlite_db.h"

#include <sqlite3.h>

#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

Database OpenInMemory() {
  auto db = Database::Open({.path = ":memory:"});
  EXPECT_THAT(db, IsOk());
  return *std::move(db);
}

TEST(SqliteErrorTest, CodesHaveOneMeaning) {
  const auto code = [](int sqlite) {
    return SqliteError(sqlite, "x", "y").code();
  };
  EXPECT_EQ(code(SQLITE_OK), absl::StatusCode::kOk);
  EXPECT_EQ(code(SQLITE_CONSTRAINT_UNIQUE), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(SQLITE_CONSTRAINT_PRIMARYKEY),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(SQLITE_CONSTRAINT_FOREIGNKEY),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(SQLITE_BUSY), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(SQLITE_BUSY_SNAPSHOT), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(SQLITE_LOCKED), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(SQLITE_FULL), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(SQLITE_CORRUPT_INDEX), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(SQLITE_NOTADB), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(SQLITE_IOERR_FSYNC), absl::StatusCode::kInternal);
  EXPECT_EQ(code(SQLITE_CONSTRAINT_NOTNULL), absl::StatusCode::kInternal);
}

TEST(SqliteErrorTest, FailuresOfTheDiskAreToldApart) {
  const auto failure = [](int sqlite) {
    return ClassifyFailure(SqliteError(sqlite, "x", "y"));
  };
  EXPECT_EQ(failure(SQLITE_FULL), DatabaseFailure::kDiskFull);
  EXPECT_EQ(failure(SQLITE_IOERR_SHMSIZE), DatabaseFailure::kDiskFull);
  EXPECT_EQ(failure(SQLITE_IOERR_FSYNC), DatabaseFailure::kFatal);
  EXPECT_EQ(failure(SQLITE_IOERR_SHORT_READ), DatabaseFailure::kFatal);
  EXPECT_EQ(failure(SQLITE_CORRUPT), DatabaseFailure::kFatal);
  EXPECT_EQ(failure(SQLITE_READONLY), DatabaseFailure::kFatal);
  EXPECT_EQ(failure(SQLITE_BUSY), DatabaseFailure::kNone);
  EXPECT_EQ(failure(SQLITE_CONSTRAINT_UNIQUE), DatabaseFailure::kNone);
  EXPECT_EQ(ClassifyFailure(absl::OkStatus()), DatabaseFailure::kNone);
  EXPECT_EQ(ClassifyFailure(absl::InternalError("ours")),
            DatabaseFailure::kNone);
}

TEST(StatementTest, ValuesComeBackAsTheyWere) {
  Database db = OpenInMemory();
  CUBICML_ASSERT_OK_AND_ASSIGN(Statement query,
                               db.Prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6"));
  const std::string text("a\0b", 3);
  const std::string blob("\0\xff", 2);
  query.BindInt(1, std::numeric_limits<int64_t>::min());
  query.BindReal(2, -0.1);
  query.BindText(3, text);
  query.BindBlob(4, blob);
  query.BindNull(5);
  query.BindText(6, absl::string_view());
  EXPECT_THAT(query.Step(), IsOkAndHolds(true));
  EXPECT_EQ(query.Int(0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(query.Real(1), -0.1);
  EXPECT_EQ(query.Text(2), text);
  EXPECT_EQ(query.Blob(3), blob);
  EXPECT_TRUE(query.IsNull(4));
  EXPECT_FALSE(query.IsNull(5));
  EXPECT_EQ(query.Text(5), "");
  EXPECT_THAT(query.Step(), IsOkAndHolds(false));
}

TEST(StatementTest, BadBindIsToldByTheNextStep) {
  Database db = OpenInMemory();
  CUBICML_ASSERT_OK_AND_ASSIGN(Statement query, db.Prepare("SELECT ?1"));
  query.BindInt(2, 1);
  EXPECT_THAT(query.Step(), StatusIs(absl::StatusCode::kInternal));
  query.Reset();
  query.BindInt(1, 1);
  EXPECT_THAT(query.Step(), IsOkAndHolds(true));
}

TEST(StatementTest, CachedOneStartsCleanEachTime) {
  Database db = OpenInMemory();
  for (int i = 0; i < 3; ++i) {
    CUBICML_ASSERT_OK_AND_ASSIGN(Statement query,
                                 db.Cached("SELECT ?1 IS NULL"));
    EXPECT_THAT(query.Step(), IsOkAndHolds(true));
    EXPECT_EQ(query.Int(0), 1);
    query.Reset();
    query.BindInt(1, 5);
    EXPECT_THAT(query.Step(), IsOkAndHolds(true));
    EXPECT_EQ(query.Int(0), 0);
  }
}

TEST(DatabaseTest, ReadOnlyConnectionRefusesToWrite) {
  TempDir dir;
  const std::string path = dir.PathOf("a.db");
  CUBICML_ASSERT_OK_AND_ASSIGN(Database writer, Database::Open({.path = path}));
  CUBICML_ASSERT_OK(writer.Execute("CREATE TABLE t (x)"));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      Database reader,
      Database::Open({.path = path, .access = Database::Access::kReadOnly}));
  EXPECT_THAT(reader.Execute("INSERT INTO t VALUES (1)"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("readonly")));
  EXPECT_THAT(Database::Open({.path = dir.PathOf("none.db"),
                              .access = Database::Access::kReadOnly}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("none.db")));
}

TEST(DatabaseTest, DoubleQuotedTextIsNotAString) {
  Database db = OpenInMemory();
  EXPECT_THAT(db.Execute("SELECT \"typo\""),
              StatusIs(absl::StatusCode::kInternal));
}

TEST(SavepointTest, UndoesWhatItIsNotToldToKeep) {
  Database db = OpenInMemory();
  CUBICML_ASSERT_OK(db.Execute("CREATE TABLE t (x)"));
  CUBICML_ASSERT_OK_AND_ASSIGN(Transaction transaction,
                               Transaction::BeginImmediate(&db));
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(Savepoint kept, Savepoint::Begin(&db));
    CUBICML_ASSERT_OK(db.Execute("INSERT INTO t VALUES (1)"));
    CUBICML_ASSERT_OK(kept.Release());
  }
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(Savepoint undone, Savepoint::Begin(&db));
    CUBICML_ASSERT_OK(db.Execute("INSERT INTO t VALUES (2)"));
  }
  CUBICML_ASSERT_OK(transaction.Commit());
  EXPECT_THAT(db.QueryInt("SELECT sum(x) FROM t"), IsOkAndHolds(1));
}

TEST(TransactionTest, RollsBackUnlessCommitted) {
  Database db = OpenInMemory();
  CUBICML_ASSERT_OK(db.Execute("CREATE TABLE t (x)"));
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(Transaction transaction,
                                 Transaction::BeginImmediate(&db));
    CUBICML_ASSERT_OK(db.Execute("INSERT INTO t VALUES (1)"));
    EXPECT_TRUE(db.InTransaction());
  }
  EXPECT_FALSE(db.InTransaction());
  EXPECT_THAT(db.QueryInt("SELECT count(*) FROM t"), IsOkAndHolds(0));
}

}  // namespace
}  // namespace cubicml
