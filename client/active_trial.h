// SPDX-License-Identifier: Apache-2.0
//
// What stands behind a TrialHandle.

#ifndef CUBICML_CLIENT_ACTIVE_TRIAL_H_
#define CUBICML_CLIENT_ACTIVE_TRIAL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/heartbeat_loop.h"
#include "client/server_connection.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

// The connection of a client and the heartbeats of its trials. Thread-safe.
struct ClientSession {
  explicit ClientSession(TuningClientOptions options);
  // In the order of use: the loop calls through the connection.
  ServerConnection connection;
  const SystemClock clock;
  HeartbeatLoop heartbeats;
};

// Completes a trial. A request_id is made when there is none, so that it can
// be repeated.
absl::StatusOr<v1::Trial> SendCompletion(ServerConnection* connection,
                                         v1::CompleteTrialRequest request,
                                         absl::Duration timeout);

// Thread-safe.
class ActiveTrial {
 public:
  ActiveTrial(std::shared_ptr<ClientSession> session, v1::Trial trial);
  // Reports ABANDONED unless the trial has ended or was released.
  ~ActiveTrial();

  const v1::Trial& trial() const { return trial_; }
  bool should_stop() const { return held_->should_stop(); }
  void Report(v1::IntermediateMeasurement intermediate);
  // Fills name and client_id into `request`.
  absl::StatusOr<v1::Trial> End(v1::CompleteTrialRequest request,
                                absl::Duration timeout);
  void Release();

 private:
  const std::shared_ptr<ClientSession> session_;
  const v1::Trial trial_;
  const std::shared_ptr<HeldTrial> held_;
  Mutex mu_;  // held during End(), so that of two only one reports
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_ACTIVE_TRIAL_H_
