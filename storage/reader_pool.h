// SPDX-License-Identifier: Apache-2.0
//
// Read-only connections that threads borrow. Readers never wait for the
// writer, nor it for them; they wait for each other when all are in use.

#ifndef CUBICML_STORAGE_READER_POOL_H_
#define CUBICML_STORAGE_READER_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "storage/sqlite_db.h"

namespace cubicml {

// Thread-safe.
class ReaderPool {
 public:
  // Opens `count` connections, at least one.
  static absl::StatusOr<std::unique_ptr<ReaderPool>> Open(
      const Database::Options& options, size_t count);

  // Runs `read` on a connection in one transaction: all that it reads is of
  // one moment. REQUIRES: `read` does not call the pool.
  absl::Status Read(absl::FunctionRef<absl::Status(Database*)> read);
  // The same for what may take long, as a list does that no index helps: one
  // connection is left to the short ones, if there are two. The first error of
  // `check` (null: none) ends the wait for a connection, or the read, and is
  // returned.
  absl::Status ReadLong(const std::function<absl::Status()>& check,
                        absl::FunctionRef<absl::Status(Database*)> read);

  // Waits for the readers and closes. Read() is UNAVAILABLE from then on.
  void Close();

 private:
  ReaderPool() = default;

  // Borrows a connection when more than `reserve` are free.
  absl::StatusOr<std::unique_ptr<Database>> Borrow(
      size_t reserve, const std::function<absl::Status()>& check);
  void Return(std::unique_ptr<Database> db);

  size_t reserve_ = 0;  // for short reads
  Mutex mu_;
  CondVar returned_;
  std::vector<std::unique_ptr<Database>> free_ ABSL_GUARDED_BY(mu_);
  size_t borrowed_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_READER_POOL_H_
