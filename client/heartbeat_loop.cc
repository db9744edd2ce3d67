// SPDX-License-Identifier: Apache-2.0

#include "client/heartbeat_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/executor.h"

namespace cubicml {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(20);
constexpr absl::Duration kLongestInterval = absl::Minutes(1);
// Intermediate measurements wait at most this long, so that the service can
// stop a hopeless trial early without a call for each step.
constexpr absl::Duration kIntermediateInterval = absl::Seconds(5);

// Before the first answer the lease is only what the trial's times say.
constexpr absl::Duration kFirstInterval = absl::Seconds(5);
// For a service that names no lease.
constexpr absl::Duration kDefaultLease = absl::Seconds(3);

absl::Duration IntervalOf(absl::Duration lease) {
  if (lease <= absl::ZeroDuration()) lease = kDefaultLease;
  // Two heartbeats in a row may be lost before the lease is.
  return std::clamp(lease / 3, kShortestInterval, kLongestInterval);
}

}  // namespace

HeldTrial::HeldTrial(std::string name, std::string client_id)
    : name_(std::move(name)), client_id_(std::move(client_id)) {}

void HeldTrial::SetIntermediate(v1::IntermediateMeasurement intermediate) {
  MutexLock lock(&mu_);
  intermediate_ = std::move(intermediate);
}

std::optional<v1::IntermediateMeasurement> HeldTrial::TakeIntermediate() {
  MutexLock lock(&mu_);
  return std::exchange(intermediate_, std::nullopt);
}

void HeldTrial::RestoreIntermediate(v1::IntermediateMeasurement intermediate) {
  MutexLock lock(&mu_);
  if (!intermediate_.has_value()) intermediate_ = std::move(intermediate);
}

bool HeldTrial::has_intermediate() const {
  MutexLock lock(&mu_);
  return intermediate_.has_value();
}

HeartbeatLoop::HeartbeatLoop(Beat beat, const Clock* clock)
    : beat_(std::move(beat)), clock_(clock) {}

HeartbeatLoop::~HeartbeatLoop() {
  std::thread thread;
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void HeartbeatLoop::Start() {
  MutexLock lock(&mu_);
  if (thread_.joinable() || stopping_) return;
  thread_ = std::thread([this] { Run(); });
}

void HeartbeatLoop::Add(std::shared_ptr<HeldTrial> trial,
                        absl::Duration lease) {
  const absl::Duration now = clock_->Elapsed();
  const absl::Duration interval = IntervalOf(lease);
  MutexLock lock(&mu_);
  const HeldTrial* key = trial.get();
  entries_[key] = Entry{std::move(trial), interval, now,
                        now + std::min(interval, kFirstInterval)};
  wake_.NotifyAll();
}

void HeartbeatLoop::Remove(const HeldTrial* trial) {
  MutexLock lock(&mu_);
  entries_.erase(trial);
}

void HeartbeatLoop::Hurry(const HeldTrial* trial) {
  MutexLock lock(&mu_);
  const auto found = entries_.find(trial);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.due = std::min(entry.due, entry.last_sent + kIntermediateInterval);
  wake_.NotifyAll();
}

absl::Duration HeartbeatLoop::TimeToNextLocked() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [key, entry] : entries_) next = std::min(next, entry.due);
  if (next == absl::InfiniteDuration()) return next;
  return std::max(next - clock_->Elapsed(), absl::ZeroDuration());
}

absl::Duration HeartbeatLoop::RunDue() {
  std::vector<std::shared_ptr<HeldTrial>> due;
  {
    MutexLock lock(&mu_);
    for (const auto& [key, entry] : entries_) {
      if (entry.due <= clock_->Elapsed()) due.push_back(entry.trial);
    }
  }
  for (std::shared_ptr<HeldTrial>& trial : due) SendOne(std::move(trial));
  MutexLock lock(&mu_);
  return TimeToNextLocked();
}

void HeartbeatLoop::SendOne(std::shared_ptr<HeldTrial> trial) {
  v1::HeartbeatRequest request;
  request.set_name(trial->name());
  request.set_client_id(trial->client_id());
  std::optional<v1::IntermediateMeasurement> intermediate =
      trial->TakeIntermediate();
  if (intermediate.has_value()) *request.mutable_intermediate() = *intermediate;
  // Not under the lock: the call may take long.
  const absl::StatusOr<v1::HeartbeatResponse> response = beat_(request);
  if (!response.ok() && intermediate.has_value()) {
    trial->RestoreIntermediate(*std::move(intermediate));
  }
  if (response.ok() && response->should_stop()) trial->RequestStop();
  Settle(trial.get(), response);
}

void HeartbeatLoop::Settle(
    const HeldTrial* trial,
    const absl::StatusOr<v1::HeartbeatResponse>& response) {
  MutexLock lock(&mu_);
  const auto found = entries_.find(trial);
  if (found == entries_.end()) return;  // it ended meanwhile
  Entry& entry = found->second;
  const absl::Duration now = clock_->Elapsed();
  if (response.ok()) {
    const absl::Duration lease = absl::Seconds(response->lease().seconds()) +
                                 absl::Nanoseconds(response->lease().nanos());
    entry.interval = IntervalOf(lease);
    entry.last_sent = now;
    entry.due = now + entry.interval;
  } else if (absl::IsFailedPrecondition(response.status()) ||
             absl::IsNotFound(response.status())) {
    entries_.erase(found);
  } else {
    entry.due = now + std::min(entry.interval / 2, kIntermediateInterval);
  }
}

void HeartbeatLoop::Run() {
  SetThreadName("cubicml-beat");
  while (true) {
    RunDue();
    MutexLock lock(&mu_);
    if (stopping_) return;
    const absl::Duration wait = TimeToNextLocked();
    if (wait <= absl::ZeroDuration()) continue;
    // What changes the times notifies; an hour is as good as for ever.
    wake_.WaitFor(&mu_, std::min(wait, absl::Hours(1)));
    if (stopping_) return;
  }
}

}  // namespace cubicml
