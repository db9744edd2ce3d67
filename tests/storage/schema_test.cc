// SPDX-License-Identifier: Apache-2.0

#include "storage/schema.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Migration kFirst = {1, "0001_first",
                              "CREATE TABLE a (x INTEGER) STRICT;"};

class SchemaTest : public ::testing::Test {
 protected:
  absl::Status Migrate(const std::vector<Migration>& migrations) {
    auto db = Database::Open({.path = path_});
    if (!db.ok()) return db.status();
    return MigrateSchema(&*db, path_, migrations, clock_);
  }
  std::vector<std::string> Backups() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (absl::EndsWith(entry.path().string(), ".backup")) {
        found.push_back(entry.path().string());
      }
    }
    return found;
  }
  absl::StatusOr<int64_t> Query(const std::string& path,
                                const std::string& sql) {
    auto db = Database::Open({.path = path});
    if (!db.ok()) return db.status();
    return db->QueryInt(sql);
  }

  TempDir dir_;
  FakeClock clock_;
  const std::string path_ = dir_.PathOf("a.db");
};

TEST_F(SchemaTest, EmbeddedMigrationsAreNumberedFromOne) {
  int64_t version = 0;
  for (const Migration& migration : Migrations()) {
    EXPECT_EQ(migration.version, ++version);
    EXPECT_FALSE(migration.sql.empty());
  }
  EXPECT_GE(version, 1);
}

TEST_F(SchemaTest, NewFileGetsEveryMigrationAndOurMark) {
  CUBICML_ASSERT_OK(Migrate({kFirst}));
  EXPECT_THAT(Query(path_, "PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(Query(path_, "PRAGMA application_id"),
              IsOkAndHolds(kApplicationId));
  EXPECT_THAT(Backups(), IsEmpty());
}

TEST_F(SchemaTest, OldFileIsCopiedThenMigrated) {
  CUBICML_ASSERT_OK(Migrate({kFirst}));
  const Migration second = {2, "0002_second",
                            "ALTER TABLE a ADD COLUMN y INTEGER;"};
  CUBICML_ASSERT_OK(Migrate({kFirst, second}));
  EXPECT_THAT(Query(path_, "PRAGMA user_version"), IsOkAndHolds(2));
  ASSERT_THAT(Backups(), SizeIs(1));
  EXPECT_THAT(Query(Backups()[0], "PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(Query(Backups()[0], "PRAGMA application_id"),
              IsOkAndHolds(kApplicationId));
  // Nothing to do: no further copy.
  CUBICML_ASSERT_OK(Migrate({kFirst, second}));
  EXPECT_THAT(Backups(), SizeIs(1));
}

TEST_F(SchemaTest, FailedMigrationLeavesTheLastGoodVersion) {
  CUBICML_ASSERT_OK(Migrate({kFirst}));
  const Migration bad = {2, "0002_bad",
                         "CREATE TABLE b (x INTEGER) STRICT; SELECT none;"};
  EXPECT_THAT(Migrate({kFirst, bad}),
              testing::AllOf(testing::Not(IsOk()),
                             StatusIs(testing::_, HasSubstr("0002_bad"))));
  EXPECT_THAT(Query(path_, "PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(Query(path_, "SELECT count(*) FROM sqlite_schema"),
              IsOkAndHolds(1));
}

TEST_F(SchemaTest, BrokenReferencesAreFailedPrecondition) {
  const Migration bad = {
      1, "0001_bad",
      "CREATE TABLE p (id INTEGER PRIMARY KEY) STRICT;"
      "CREATE TABLE c (p_id INTEGER REFERENCES p (id)) STRICT;"
      "INSERT INTO c VALUES (7);"};
  EXPECT_THAT(Migrate({bad}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("table c")));
}

TEST_F(SchemaTest, NewerFileIsRefusedWithWhatToDo) {
  CUBICML_ASSERT_OK(Migrate({kFirst, {2, "0002", "SELECT 1;"}}));
  EXPECT_THAT(Migrate({kFirst}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::AllOf(HasSubstr("schema version 2"),
                                      HasSubstr("up to 1"),
                                      HasSubstr("restore the backup"))));
}

TEST_F(SchemaTest, FileOfAnotherProgramIsRefused) {
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(Database db, Database::Open({.path = path_}));
    CUBICML_ASSERT_OK(db.Execute("PRAGMA application_id = 7"));
  }
  EXPECT_THAT(Migrate({kFirst}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("application_id 7")));
}

}  // namespace
}  // namespace cubicml
