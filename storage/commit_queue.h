// SPDX-License-Identifier: Apache-2.0
//
// The one writer of the database. Changes from all threads are queued; the
// writer's thread takes everything that waits, runs each change in a savepoint
// of one transaction, commits once, and only then lets the callers go on. One
// sync to disk is shared by the group, which forms by itself: while one commits
// the next queues up. It never waits to make a group larger.
//
// Invariants: nothing is acknowledged before its COMMIT. A change that fails
// undoes itself alone. A commit that fails fails every change of its group.

#ifndef CUBICML_STORAGE_COMMIT_QUEUE_H_
#define CUBICML_STORAGE_COMMIT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "storage/commit_observer.h"
#include "storage/sqlite_db.h"

namespace cubicml {

// Thread-safe.
class CommitQueue {
 public:
  struct Options {
    const Clock* clock = nullptr;        // required
    CommitObserver* observer = nullptr;  // optional
    size_t max_queue = 4096;
    size_t max_group = 256;
    // How often a full disk is tried again.
    absl::Duration probe_interval = absl::Seconds(1);
    // Frames of the log after which it is copied into the database.
    int64_t checkpoint_frames = 4000;
    // How long to wait for another process's lock.
    absl::Duration busy_timeout = absl::Seconds(5);
  };

  // A change. Runs on the writer's thread, inside a transaction that it must
  // not end. An error undoes what it did and goes to its caller.
  using Operation = absl::FunctionRef<absl::Status(Database*)>;

  CommitQueue(Database database, const Options& options);
  ~CommitQueue();
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  // Blocks until the change is durable, or has failed. Besides the operation's
  // own errors:
  //   RESOURCE_EXHAUSTED  the queue or the disk is full, or another process
  //                       holds the database; tells when to retry
  //   UNAVAILABLE         closed, or writes stopped after a failure
  //   DATA_LOSS, INTERNAL the commit failed; after a failed disk it is not
  //                       known whether a restart will find the change
  absl::Status Apply(Operation operation);

  // OK while changes are accepted.
  absl::Status WriteHealth() const;

  // Finishes what is queued, refuses what comes, empties the log and closes
  // the database. Idempotent. Returns the first failure.
  absl::Status Close();

 private:
  // A caller that waits; lives on its stack.
  struct Waiter {
    explicit Waiter(Operation op) : operation(op) {}
    Operation operation;
    absl::Status result;  // the writer's until done
    Mutex mu;
    CondVar wake;
    bool done ABSL_GUARDED_BY(mu) = false;
  };

  void Run();
  // Empty: closed, and nothing is left. Probes a full disk meanwhile.
  std::vector<Waiter*> TakeGroup();
  void CommitGroup(const std::vector<Waiter*>& group);
  // Returns what happened to the group as a whole: an error is then told to
  // every waiter, also to those that had one of their own.
  absl::Status RunGroup(const std::vector<Waiter*>& group);
  absl::Status RunOne(Waiter* waiter);
  // Stops writes if it must. Returns what callers are told.
  absl::Status NoteFailure(const absl::Status& status);
  void ProbeDisk();
  void CheckpointIfDue();
  absl::Status Refusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  // Owned by the writer's thread.
  std::optional<Database> db_;
  int64_t next_truncate_frames_ = 0;

  mutable Mutex mu_;
  CondVar wake_;
  std::deque<Waiter*> queue_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // Not OK: the disk is full (it may recover) or broken (it will not).
  absl::Status full_ ABSL_GUARDED_BY(mu_);
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  absl::Status close_result_ ABSL_GUARDED_BY(mu_);

  Mutex join_mu_;  // Close() may be called by several threads
  std::thread writer_ ABSL_GUARDED_BY(join_mu_);
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_COMMIT_QUEUE_H_
