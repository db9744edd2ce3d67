// SPDX-License-Identifier: Apache-2.0

#include "storage/commit_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/executor.h"
#include "base/field_error.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

constexpr absl::Duration kQueueFullRetry = absl::Milliseconds(100);
// A log this much longer than wanted is held up by readers: wait for them.
constexpr int64_t kOverdueFactor = 16;
constexpr absl::Duration kReaderWait = absl::Milliseconds(100);

}  // namespace

CommitQueue::CommitQueue(Database database, const Options& options)
    : options_(options), db_(std::move(database)) {
  db_->DisableAutoCheckpoint();
  db_->SetBusyTimeout(options_.busy_timeout);
  writer_ = std::thread([this]() noexcept {
    SetThreadName("commit-queue");
    Run();
  });
}

CommitQueue::~CommitQueue() { Close().IgnoreError(); }

absl::Status CommitQueue::Refusal() const {
  CUBICML_RETURN_IF_ERROR(broken_);
  return full_;
}

absl::Status CommitQueue::WriteHealth() const {
  MutexLock lock(&mu_);
  if (closed_) return absl::UnavailableError("the store is closed");
  return Refusal();
}

absl::Status CommitQueue::Apply(Operation operation) {
  Waiter waiter(operation);
  {
    MutexLock lock(&mu_);
    if (closed_) return absl::UnavailableError("the store is closed");
    CUBICML_RETURN_IF_ERROR(Refusal());
    if (queue_.size() >= options_.max_queue) {
      return WithRetryDelay(
          absl::ResourceExhaustedError("too many changes are waiting"),
          kQueueFullRetry);
    }
    queue_.push_back(&waiter);
    if (queue_.size() == 1) wake_.NotifyOne();
  }
  MutexLock lock(&waiter.mu);
  while (!waiter.done) waiter.wake.Wait(&waiter.mu);
  return std::move(waiter.result);
}

void CommitQueue::Run() {
  while (true) {
    const std::vector<Waiter*> group = TakeGroup();
    if (group.empty()) break;
    CommitGroup(group);
    CheckpointIfDue();
  }
  absl::Status result;
  {
    MutexLock lock(&mu_);
    result = broken_;
  }
  if (result.ok()) result = db_->Checkpoint(/*truncate=*/true);
  db_.reset();
  MutexLock lock(&mu_);
  close_result_ = std::move(result);
}

std::vector<CommitQueue::Waiter*> CommitQueue::TakeGroup() {
  mu_.Lock();
  while (queue_.empty() && !closed_) {
    if (full_.ok()) {
      wake_.Wait(&mu_);
    } else if (!wake_.WaitFor(&mu_, options_.probe_interval)) {
      mu_.Unlock();
      ProbeDisk();
      mu_.Lock();
    }
  }
  const size_t size = std::min(queue_.size(), options_.max_group);
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(size);
  std::vector<Waiter*> group(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  mu_.Unlock();
  return group;
}

void CommitQueue::CommitGroup(const std::vector<Waiter*>& group) {
  const absl::Duration start = options_.clock->Elapsed();
  absl::Status status;
  {
    // What was queued before a failure is refused like what comes after it.
    MutexLock lock(&mu_);
    status = Refusal();
  }
  if (status.ok()) {
    status = RunGroup(group);
    if (!status.ok()) status = NoteFailure(status);
  }
  if (!status.ok()) {
    for (Waiter* waiter : group) waiter->result = status;
  } else if (options_.observer != nullptr) {
    size_t depth = 0;
    {
      MutexLock lock(&mu_);
      depth = queue_.size();
    }
    options_.observer->OnCommit(group.size(), options_.clock->Elapsed() - start,
                                depth);
  }
  for (Waiter* waiter : group) {
    // Notified under the lock: once it is released the waiter may be gone.
    MutexLock lock(&waiter->mu);
    waiter->done = true;
    waiter->wake.NotifyOne();
  }
}

absl::Status CommitQueue::RunGroup(const std::vector<Waiter*>& group) {
  CUBICML_ASSIGN_OR_RETURN(Transaction transaction,
                           Transaction::BeginImmediate(&*db_));
  for (Waiter* waiter : group) {
    waiter->result = RunOne(waiter);
    if (waiter->result.ok()) continue;
    // A full or broken disk is everybody's, and SQLite has then usually
    // undone the whole transaction.
    if (!db_->InTransaction() ||
        ClassifyFailure(waiter->result) != DatabaseFailure::kNone) {
      return waiter->result;
    }
  }
  return transaction.Commit();
}

absl::Status CommitQueue::RunOne(Waiter* waiter) {
  CUBICML_ASSIGN_OR_RETURN(Savepoint savepoint, Savepoint::Begin(&*db_));
  CUBICML_RETURN_IF_ERROR(waiter->operation(&*db_));
  return savepoint.Release();
}

absl::Status CommitQueue::NoteFailure(const absl::Status& status) {
  const DatabaseFailure failure = ClassifyFailure(status);
  CUBICML_LOG(ERROR) << "commit failed" << Field("error", status.ToString());
  if (options_.observer != nullptr) options_.observer->OnWriteFailure(status);
  MutexLock lock(&mu_);
  if (failure == DatabaseFailure::kFatal) {
    broken_ = absl::UnavailableError(absl::StrCat(
        "writes stopped after a failure of the database or its disk; repair "
        "it and restart: ",
        status.message()));
  } else if (failure == DatabaseFailure::kDiskFull) {
    full_ = WithRetryDelay(absl::ResourceExhaustedError(
                               "the disk of the database is full; writes go on "
                               "by themselves when there is space"),
                           options_.probe_interval);
    return full_;
  }
  return status;
}

// A small commit that changes nothing, yet has to reach the disk.
void CommitQueue::ProbeDisk() {
  const auto probe = [this]() -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(const int64_t version,
                             db_->QueryInt("PRAGMA user_version"));
    CUBICML_ASSIGN_OR_RETURN(Transaction transaction,
                             Transaction::BeginImmediate(&*db_));
    CUBICML_RETURN_IF_ERROR(
        db_->Execute(absl::StrCat("PRAGMA user_version = ", version)));
    return transaction.Commit();
  };
  const absl::Status status = probe();
  if (status.ok()) {
    CUBICML_LOG(INFO) << "the disk has space again, writes go on";
    MutexLock lock(&mu_);
    full_ = absl::OkStatus();
  } else if (ClassifyFailure(status) == DatabaseFailure::kFatal) {
    NoteFailure(status).IgnoreError();
    MutexLock lock(&mu_);
    full_ = absl::OkStatus();  // broken_ says it now; no more probes
  }
}

void CommitQueue::CheckpointIfDue() {
  const int64_t frames = db_->wal_frames();
  if (frames < options_.checkpoint_frames) {
    next_truncate_frames_ = options_.checkpoint_frames * kOverdueFactor;
    return;
  }
  // Readers that overlap can keep the log from starting over. Ours are short:
  // waiting a moment for them ends it. Somebody else's that is long must not
  // hold up every commit, so that the next try is far away.
  const bool overdue = frames >= next_truncate_frames_;
  if (overdue) {
    next_truncate_frames_ =
        frames + options_.checkpoint_frames * kOverdueFactor;
    db_->SetBusyTimeout(kReaderWait);
  }
  const absl::Status status = db_->Checkpoint(/*truncate=*/overdue);
  if (overdue) db_->SetBusyTimeout(options_.busy_timeout);
  if (ClassifyFailure(status) != DatabaseFailure::kNone) {
    NoteFailure(status).IgnoreError();
  }
}

absl::Status CommitQueue::Close() {
  {
    MutexLock lock(&mu_);
    closed_ = true;
  }
  wake_.NotifyAll();
  MutexLock join_lock(&join_mu_);
  if (writer_.joinable()) writer_.join();
  MutexLock lock(&mu_);
  return close_result_;
}

}  // namespace cubicml
