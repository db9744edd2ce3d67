// SPDX-License-Identifier: Apache-2.0
//
// Brings a database file to the schema that this program speaks, or refuses it
// with a reason that says what to do. Forward only: a file is never made older.

#ifndef CUBICML_STORAGE_SCHEMA_H_
#define CUBICML_STORAGE_SCHEMA_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "storage/sqlite_db.h"

namespace cubicml {

// In the header of our files: "CubI". Shown by file(1).
inline constexpr int64_t kApplicationId = 0x43756249;

struct Migration {
  int64_t version = 0;  // of the schema after it; the first is 1
  absl::string_view name;
  absl::string_view sql;
};

// Those of storage/migrations, in order; made by the build.
std::span<const Migration> Migrations();

// Checks that `db`, opened from `path`, is new, or one of ours and not newer
// than `migrations`. Changes nothing.
//   FAILED_PRECONDITION  another program's file, or a newer schema
//   DATA_LOSS            not a database, or a broken one
absl::Status CheckSchema(Database* db, absl::string_view path,
                         std::span<const Migration> migrations);

// Applies what is missing, each migration in a transaction of its own. An
// existing file is first copied to `path`.vN-TIME.backup. After an error the
// file is as the last migration that worked left it.
//   As CheckSchema; FAILED_PRECONDITION also when rows refer to rows that are
//   not there.
absl::Status MigrateSchema(Database* db, absl::string_view path,
                           std::span<const Migration> migrations,
                           const Clock& clock);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_SCHEMA_H_
