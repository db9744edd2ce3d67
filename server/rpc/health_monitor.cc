// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/health_monitor.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/executor.h"
#include "base/log.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {
namespace {

// The bound on the studies with series of their own.
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
  std::vector<v1::Study> studies;
  v1::ListStudiesRequest request;
  do {
    request.set_page_size(kStudiesWithMetrics -
                          static_cast<int>(studies.size()));
    absl::StatusOr<v1::ListStudiesResponse> page =
        options_.service->ListStudies(request);
    if (!page.ok()) return;  // the gauges stay as they are; health tells why
    std::move(page->mutable_studies()->begin(), page->mutable_studies()->end(),
              std::back_inserter(studies));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() &&
           studies.size() < kStudiesWithMetrics);
  options_.metrics->SetStudies(studies);
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
