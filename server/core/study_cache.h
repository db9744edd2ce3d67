// SPDX-License-Identifier: Apache-2.0
//
// The studies in memory. Loads one when it is first used, drops the least
// recently used, and keeps a study that is being changed to itself.

#ifndef CUBICML_SERVER_CORE_STUDY_CACHE_H_
#define CUBICML_SERVER_CORE_STUDY_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "server/core/study_loader.h"
#include "server/core/study_state.h"

namespace cubicml {

// Thread-safe. Must outlive its handles.
class StudyCache {
 public:
  // A study in use: while it lives, the study is neither dropped nor changed.
  class Handle {
   public:
    Handle(StudyCache* cache, std::string name,
           std::shared_ptr<StudyState> study, bool exclusive)
        : cache_(cache),
          name_(std::move(name)),
          study_(std::move(study)),
          exclusive_(exclusive) {}
    ~Handle() {
      if (cache_ != nullptr) cache_->Release(name_, exclusive_, drop_);
    }
    Handle(Handle&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)),
          name_(std::move(other.name_)),
          study_(std::move(other.study_)),
          exclusive_(other.exclusive_),
          drop_(other.drop_) {}
    Handle& operator=(Handle&&) = delete;

    StudyState* operator->() const { return study_.get(); }
    StudyState* get() const { return study_.get(); }

    // The store has another study now: what is in memory is retired, and loaded
    // anew when it is next used. REQUIRES: the handle is exclusive.
    void Drop() { drop_ = true; }

   private:
    StudyCache* cache_;
    std::string name_;
    std::shared_ptr<StudyState> study_;
    bool exclusive_;
    bool drop_ = false;
  };

  // Studies are loaded on `load_threads` threads of the cache's own, so that
  // whoever waits for one may leave; 0: on the thread of who wants it, who
  // waits until it is there.
  StudyCache(StudyLoaderOptions options, size_t max_studies,
             size_t load_threads = 0);
  // Ends what is being loaded.
  ~StudyCache();

  // Loads the study when it is not in memory, once for all who want it; they
  // wait for at most kMaxWait. NOT_FOUND; UNAVAILABLE when the wait was in
  // vain, and RESOURCE_EXHAUSTED when too many are being loaded; and the
  // loader's.
  static constexpr absl::Duration kMaxWait = absl::Seconds(10);
  absl::StatusOr<Handle> Acquire(const std::string& name);
  // The same, but DEADLINE_EXCEEDED when it is still being loaded or changed at
  // `deadline`, on Clock::Elapsed. A load goes on, for who comes later.
  absl::StatusOr<Handle> AcquireBefore(const std::string& name,
                                       absl::Duration deadline);
  // Waits until nobody uses the study and keeps others out while the handle
  // lives. Loads nothing: the handle is empty when the study was not in memory,
  // or does not exist. UNAVAILABLE when it is still in use after `max_wait`.
  absl::StatusOr<Handle> AcquireExclusive(const std::string& name,
                                          absl::Duration max_wait = kMaxWait);

  // The id of a study, without loading it. NOT_FOUND.
  absl::StatusOr<StudyId> FindId(const std::string& name);
  // Those in memory now.
  std::vector<std::shared_ptr<StudyState>> List() const;
  // The one with this name, or null; does not load it.
  std::shared_ptr<StudyState> Find(const std::string& name) const;

 private:
  struct Entry {
    std::shared_ptr<StudyState> study;
    size_t users = 0;
    bool closed = false;  // being loaded or changed: wait
    uint64_t last_used = 0;
  };
  // One load, shared by who began it and the thread that carries it out.
  // Guarded by mu_.
  struct Load {
    bool awaited = true;  // by who began it
    bool done = false;
    absl::StatusOr<std::shared_ptr<StudyState>> result =
        absl::UnknownError("not loaded");
  };

  // REQUIRES: the entry is closed for this load.
  void RunLoad(const std::string& name, Load* load);
  absl::StatusOr<Handle> AwaitLoad(const std::string& name,
                                   absl::Duration deadline, Load* load);
  void Release(const std::string& name, bool exclusive, bool drop);
  // False when `deadline` has passed.
  bool WaitForChangeLocked(absl::Duration deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until nobody loads or changes it. False when `deadline` has passed.
  bool WaitUntilOpenLocked(const std::string& name, absl::Duration deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EvictLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  StudyLoaderOptions options_;
  const size_t max_studies_;
  std::atomic<bool> closing_ = false;

  mutable Mutex mu_;
  CondVar changed_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mu_);
  uint64_t uses_ ABSL_GUARDED_BY(mu_) = 0;
  // Last: what they do uses the members above.
  const std::unique_ptr<Executor> loaders_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_CACHE_H_
