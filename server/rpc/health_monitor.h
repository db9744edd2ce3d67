// SPDX-License-Identifier: Apache-2.0
//
// Tells gRPC's health service, and everybody else who asks, whether calls are
// served: not while the store refuses writes, and not while the server drains.
// On the same beat it brings the studies' gauges up to date.

#ifndef CUBICML_SERVER_RPC_HEALTH_MONITOR_H_
#define CUBICML_SERVER_RPC_HEALTH_MONITOR_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/core/study_service.h"
#include "server/rpc/metrics.h"
#include "storage/study_store.h"

namespace cubicml {

// What the monitor looks at and whom it tells. All must outlive it.
struct HealthMonitorOptions {
  const StudyStore* store = nullptr;
  StudyService* service = nullptr;
  ServerMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
  // Is told every change of state, on the monitor's thread or that of
  // SetDraining().
  std::function<void(bool serving)> publish;
  absl::Duration health_period = absl::Seconds(1);
  absl::Duration metrics_period = absl::Seconds(5);
};

// Thread-safe.
class HealthMonitor {
 public:
  explicit HealthMonitor(HealthMonitorOptions options);
  ~HealthMonitor();

  // One beat; the thread does nothing else.
  void CheckHealth();
  void RefreshMetrics();

  // Starts the thread.
  void Start();
  // NOT_SERVING from now on.
  void SetDraining();
  // Ends the thread.
  void Stop();

  // OK while calls are served; otherwise why not.
  absl::Status Readiness() const;

 private:
  void Run();
  void SetReadiness(const absl::Status& readiness);

  const HealthMonitorOptions options_;
  std::thread thread_;

  mutable Mutex mu_;
  CondVar wake_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // UNKNOWN: nothing has been published yet.
  absl::Status readiness_ ABSL_GUARDED_BY(mu_) = absl::UnknownError("starting");
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_HEALTH_MONITOR_H_
