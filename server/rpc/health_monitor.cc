// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/health_monitor.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/executor.h"
#include "base/log.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {
namespace {

// One page: the bound on the studies with series of their own.
constexpr int kStudiesWithMetrics = 1000;

}  // namespace

HealthMonitor::HealthMonitor(HealthMonitorOptions options)
    : options_(std::move(options)) {}

HealthMonitor::~HealthMonitor() { Stop(); }

void HealthMonitor::CheckHealth() {
  SetReadiness(options_.store->WriteHealth());
}

void HealthMonitor::SetReadiness(const absl::Status& readiness) {
  // Published under the lock, so that the last word is the last state.
  MutexLock lock(&mu_);
  const absl::Status now =
      draining_ ? absl::UnavailableError("draining") : readiness;
  if (now.code() == readiness_.code()) return;
  readiness_ = now;
  if (now.ok()) {
    CUBICML_LOG(INFO) << "serving";
  } else {
    CUBICML_LOG(WARNING) << "not serving" << Field("why", now.ToString());
  }
  options_.publish(now.ok());
}

void HealthMonitor::RefreshMetrics() {
  v1::ListStudiesRequest request;
  request.set_page_size(kStudiesWithMetrics);
  const absl::StatusOr<v1::ListStudiesResponse> page =
      options_.service->ListStudies(request);
  if (!page.ok()) return;  // the gauges stay as they are; health tells why
  options_.metrics->SetStudies(
      std::vector<v1::Study>(page->studies().begin(), page->studies().end()));
}

void HealthMonitor::Start() {
  CheckHealth();
  thread_ = std::thread([this]() noexcept {
    SetThreadName("health");
    Run();
  });
}

void HealthMonitor::Run() {
  int64_t beats_to_refresh = 0;
  while (true) {
    if (beats_to_refresh-- <= 0) {
      const absl::Duration start = options_.clock->Elapsed();
      RefreshMetrics();
      // Counting the trials of many large studies takes its time; it never
      // takes more than a fiftieth of it.
      const absl::Duration pause = std::max(
          options_.metrics_period, 50 * (options_.clock->Elapsed() - start));
      beats_to_refresh = pause / options_.health_period - 1;
    }
    {
      MutexLock lock(&mu_);
      if (!stopped_) wake_.WaitFor(&mu_, options_.health_period);
      if (stopped_) return;
    }
    CheckHealth();
  }
}

void HealthMonitor::SetDraining() {
  {
    MutexLock lock(&mu_);
    draining_ = true;
  }
  SetReadiness(absl::OkStatus());
}

void HealthMonitor::Stop() {
  {
    MutexLock lock(&mu_);
    stopped_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

absl::Status HealthMonitor::Readiness() const {
  MutexLock lock(&mu_);
  return readiness_;
}

}  // namespace cubicml
