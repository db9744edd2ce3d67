// SPDX-License-Identifier: Apache-2.0

#include "storage/reader_pool.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace cubicml {
namespace {

// How often somebody who waits for a connection is asked whether he still does.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(20);

absl::Status ReadAtOneMoment(Database* db,
                             absl::FunctionRef<absl::Status(Database*)> read) {
  CUBICML_ASSIGN_OR_RETURN(Transaction transaction, Transaction::BeginRead(db));
  CUBICML_RETURN_IF_ERROR(read(db));
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReaderPool>> ReaderPool::Open(
    const Database::Options& options, size_t count) {
  std::unique_ptr<ReaderPool> pool(new ReaderPool);
  MutexLock lock(&pool->mu_);
  for (size_t i = 0; i < std::max<size_t>(count, 1); ++i) {
    CUBICML_ASSIGN_OR_RETURN(Database db, Database::Open(options));
    CUBICML_RETURN_IF_ERROR(
        db.Execute("PRAGMA query_only = ON; PRAGMA cache_size = -8000"));
    pool->free_.push_back(std::make_unique<Database>(std::move(db)));
  }
  pool->reserve_ = count > 1 ? 1 : 0;
  return pool;
}

absl::Status ReaderPool::Read(absl::FunctionRef<absl::Status(Database*)> read) {
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<Database> db, Borrow(0, nullptr));
  absl::Status status = ReadAtOneMoment(db.get(), read);
  Return(std::move(db));
  return status;
}

absl::Status ReaderPool::ReadLong(
    const std::function<absl::Status()>& check,
    absl::FunctionRef<absl::Status(Database*)> read) {
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<Database> db,
                           Borrow(reserve_, check));
  absl::Status status = ReadChecked(db.get(), check, [&](Database* checked) {
    return ReadAtOneMoment(checked, read);
  });
  Return(std::move(db));
  return status;
}

absl::StatusOr<std::unique_ptr<Database>> ReaderPool::Borrow(
    size_t reserve, const std::function<absl::Status()>& check) {
  MutexLock lock(&mu_);
  while (free_.size() <= reserve && !closed_) {
    if (check == nullptr) {
      returned_.Wait(&mu_);
      continue;
    }
    CUBICML_RETURN_IF_ERROR(check());
    returned_.WaitFor(&mu_, kCheckInterval);
  }
  if (closed_) return absl::UnavailableError("the store is closed");
  // The last returned one has the warmest cache.
  std::unique_ptr<Database> db = std::move(free_.back());
  free_.pop_back();
  ++borrowed_;
  return db;
}

void ReaderPool::Return(std::unique_ptr<Database> db) {
  MutexLock lock(&mu_);
  free_.push_back(std::move(db));
  --borrowed_;
  // One alone might wake a long read, which has to leave it to a short one.
  returned_.NotifyAll();
}

void ReaderPool::Close() {
  MutexLock lock(&mu_);
  closed_ = true;
  returned_.NotifyAll();
  while (borrowed_ > 0) returned_.Wait(&mu_);
  free_.clear();
}

}  // namespace cubicml
