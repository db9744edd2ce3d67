// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_cache.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace cubicml {

namespace {

// Loads that wait for a thread; more are refused.
constexpr size_t kMaxQueuedLoads = 1024;
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

std::unique_ptr<Executor> NewLoaders(size_t threads) {
  if (threads == 0) return std::make_unique<InlineExecutor>();
  return std::make_unique<ThreadPool>("loader", threads, kMaxQueuedLoads);
}

absl::Status TooManyLoadsError() {
  return WithRetryDelay(
      absl::ResourceExhaustedError("too many studies are being loaded"),
      kRetryDelay);
}

absl::Status StillClosedError(absl::string_view name) {
  return absl::DeadlineExceededError(
      absl::StrCat(name, " is being loaded or changed: try again"));
}

}  // namespace

StudyCache::StudyCache(StudyLoaderOptions options, size_t max_studies,
                       size_t load_threads)
    : options_(std::move(options)),
      max_studies_(max_studies),
      loaders_(NewLoaders(load_threads)) {
  options_.check = [this] {
    return closing_ ? absl::UnavailableError("the service is closing")
                    : absl::OkStatus();
  };
}

StudyCache::~StudyCache() { closing_ = true; }

bool StudyCache::WaitForChangeLocked(absl::Duration deadline) {
  const absl::Duration left = deadline - options_.clock->Elapsed();
  return left > absl::ZeroDuration() && changed_.WaitFor(&mu_, left);
}

bool StudyCache::WaitUntilOpenLocked(const std::string& name,
                                     absl::Duration deadline) {
  while (entries_[name].closed) {
    if (!WaitForChangeLocked(deadline)) return !entries_[name].closed;
  }
  return true;
}

absl::StatusOr<StudyCache::Handle> StudyCache::Acquire(
    const std::string& name) {
  absl::StatusOr<Handle> handle =
      AcquireBefore(name, options_.clock->Elapsed() + kMaxWait);
  if (absl::IsDeadlineExceeded(handle.status())) {
    return absl::UnavailableError(handle.status().message());
  }
  return handle;
}

absl::StatusOr<StudyCache::Handle> StudyCache::AcquireBefore(
    const std::string& name, absl::Duration deadline) {
  {
    MutexLock lock(&mu_);
    if (!WaitUntilOpenLocked(name, deadline)) return StillClosedError(name);
    Entry& entry = entries_[name];
    if (entry.study != nullptr) {
      ++entry.users;
      entry.last_used = ++uses_;
      return Handle(this, name, entry.study, /*exclusive=*/false);
    }
    entry.closed = true;
  }
  const auto load = std::make_shared<Load>();
  if (!loaders_->TrySchedule(
          [this, name, load] { RunLoad(name, load.get()); })) {
    MutexLock lock(&mu_);
    entries_.erase(name);
    changed_.NotifyAll();
    return TooManyLoadsError();
  }
  return AwaitLoad(name, deadline, load.get());
}

void StudyCache::RunLoad(const std::string& name, Load* load) {
  const absl::Status open = options_.check();
  absl::StatusOr<std::shared_ptr<StudyState>> loaded =
      open.ok() ? LoadStudy(options_, name) : open;
  MutexLock lock(&mu_);
  changed_.NotifyAll();
  load->done = true;
  load->result = std::move(loaded);
  if (!load->result.ok()) {
    // Only who began it is told: to others who wait the study may be new.
    entries_.erase(name);
    return;
  }
  Entry& entry = entries_[name];
  entry.study = *load->result;
  entry.closed = false;
  entry.users = load->awaited ? 1 : 0;
  entry.last_used = ++uses_;
  EvictLocked();
}

absl::StatusOr<StudyCache::Handle> StudyCache::AwaitLoad(
    const std::string& name, absl::Duration deadline, Load* load) {
  MutexLock lock(&mu_);
  while (!load->done) {
    if (WaitForChangeLocked(deadline) || load->done) continue;
    load->awaited = false;
    return StillClosedError(name);
  }
  CUBICML_RETURN_IF_ERROR(load->result.status());
  return Handle(this, name, *load->result, /*exclusive=*/false);
}

absl::StatusOr<StudyCache::Handle> StudyCache::AcquireExclusive(
    const std::string& name, absl::Duration max_wait) {
  const absl::Duration deadline = options_.clock->Elapsed() + max_wait;
  const absl::Status in_use =
      absl::UnavailableError(absl::StrCat(name, " is in use: try again"));
  MutexLock lock(&mu_);
  if (!WaitUntilOpenLocked(name, deadline)) return in_use;
  // Newcomers wait from now on; those inside finish.
  Entry& entry = entries_[name];
  entry.closed = true;
  while (entry.users > 0) {
    if (WaitForChangeLocked(deadline) || entry.users == 0) continue;
    entry.closed = false;
    changed_.NotifyAll();
    return in_use;
  }
  entry.users = 1;
  return Handle(this, name, entry.study, /*exclusive=*/true);
}

void StudyCache::Release(const std::string& name, bool exclusive, bool drop) {
  MutexLock lock(&mu_);
  const auto it = entries_.find(name);
  Entry& entry = it->second;
  --entry.users;
  if (!exclusive) {
    // Only who changes a study waits for its users.
    if (entry.closed && entry.users == 0) changed_.NotifyAll();
    return;
  }
  entry.closed = false;
  if (drop && entry.study != nullptr) entry.study->Retire();
  if (drop || entry.study == nullptr) entries_.erase(it);
  changed_.NotifyAll();
}

void StudyCache::EvictLocked() {
  while (entries_.size() > max_studies_) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      const Entry& entry = it->second;
      // Leases of a study in memory run on the clock that never jumps.
      if (entry.closed || entry.users > 0 || entry.study->held_trials() > 0) {
        continue;
      }
      if (oldest == entries_.end() ||
          entry.last_used < oldest->second.last_used) {
        oldest = it;
      }
    }
    if (oldest == entries_.end()) return;
    oldest->second.study->Retire();
    entries_.erase(oldest);
  }
}

absl::StatusOr<StudyId> StudyCache::FindId(const std::string& name) {
  const std::shared_ptr<StudyState> study = Find(name);
  if (study != nullptr) return study->id();
  CUBICML_ASSIGN_OR_RETURN(const StoredStudy stored,
                           options_.store->GetStudy(name));
  return stored.id;
}

std::vector<std::shared_ptr<StudyState>> StudyCache::List() const {
  std::vector<std::shared_ptr<StudyState>> studies;
  MutexLock lock(&mu_);
  for (const auto& [name, entry] : entries_) {
    if (entry.study != nullptr && !entry.closed) {
      studies.push_back(entry.study);
    }
  }
  return studies;
}

std::shared_ptr<StudyState> StudyCache::Find(const std::string& name) const {
  MutexLock lock(&mu_);
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : it->second.study;
}

}  // namespace cubicml
