// SPDX-License-Identifier: Apache-2.0
//
// Keeps the leases of all trials of a client alive, from one thread. Knows no
// gRPC: how a heartbeat is sent is given to it.

#ifndef CUBICML_CLIENT_HEARTBEAT_LOOP_H_
#define CUBICML_CLIENT_HEARTBEAT_LOOP_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

// A trial that this process holds. Thread-safe.
class HeldTrial {
 public:
  HeldTrial(std::string name, std::string client_id);

  const std::string& name() const { return name_; }
  const std::string& client_id() const { return client_id_; }
  bool should_stop() const { return should_stop_.load(); }
  void RequestStop() { should_stop_.store(true); }

  // The latest one is sent with the next heartbeat; earlier ones that were not
  // sent are lost.
  void SetIntermediate(v1::IntermediateMeasurement intermediate);
  // Takes what has not been sent.
  std::optional<v1::IntermediateMeasurement> TakeIntermediate();
  // Puts back what could not be sent, unless there is something newer.
  void RestoreIntermediate(v1::IntermediateMeasurement intermediate);
  bool has_intermediate() const;

 private:
  const std::string name_;
  const std::string client_id_;
  std::atomic<bool> should_stop_ = false;
  mutable Mutex mu_;
  std::optional<v1::IntermediateMeasurement> intermediate_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe.
class HeartbeatLoop {
 public:
  // FAILED_PRECONDITION and NOT_FOUND end the trial's heartbeats; should_stop
  // in an answer reaches HeldTrial. Everything else is tried again.
  using Beat = std::function<absl::StatusOr<v1::HeartbeatResponse>(
      const v1::HeartbeatRequest& request)>;

  // `clock` must outlive the loop. Without Start() the owner calls RunDue().
  HeartbeatLoop(Beat beat, const Clock* clock);
  // Waits for a heartbeat in flight.
  ~HeartbeatLoop();

  // Starts the thread; again does nothing.
  void Start();

  // `lease`: what is left of it. Heartbeats are due after a third of it, the
  // first one within seconds: its answer says what is really left.
  void Add(std::shared_ptr<HeldTrial> trial, absl::Duration lease);
  void Remove(const HeldTrial* trial);
  // An intermediate measurement is there: send it soon.
  void Hurry(const HeldTrial* trial);

  // Sends what is due, on the calling thread. Returns the time until the next
  // heartbeat, infinite when no trial is held.
  absl::Duration RunDue();

 private:
  struct Entry {
    std::shared_ptr<HeldTrial> trial;
    absl::Duration interval;
    absl::Duration last_sent;
    absl::Duration due;
  };

  void Run();
  void SendOne(std::shared_ptr<HeldTrial> trial);
  void Settle(const HeldTrial* trial,
              const absl::StatusOr<v1::HeartbeatResponse>& response);
  absl::Duration TimeToNextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Beat beat_;
  const Clock* const clock_;

  mutable Mutex mu_;
  CondVar wake_;
  std::map<const HeldTrial*, Entry> entries_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_HEARTBEAT_LOOP_H_
