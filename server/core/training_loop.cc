// SPDX-License-Identifier: Apache-2.0

#include "server/core/training_loop.h"

#include "base/executor.h"
#include "base/log.h"

namespace cubicml {

TrainingLoop::TrainingLoop(StudyService* service,
                           const TrainingLoopOptions& options)
    : service_(service),
      options_(options),
      training_([this](const std::stop_token& stop) { RunTraining(stop); }),
      leases_([this](const std::stop_token& stop) { RunLeases(stop); }) {}

TrainingLoop::~TrainingLoop() { Stop(); }

void TrainingLoop::Stop() {
  training_.request_stop();
  leases_.request_stop();
  if (training_.joinable()) training_.join();
  if (leases_.joinable()) leases_.join();
}

void TrainingLoop::RunTraining(const std::stop_token& stop) {
  SetThreadName("cubicml-train");
  SetThreadNiceness(options_.niceness);
  while (!stop.stop_requested()) {
    service_->WaitForWork(options_.interval, stop);
    if (!stop.stop_requested()) service_->TrainPendingStudies(stop);
  }
}

void TrainingLoop::RunLeases(const std::stop_token& stop) {
  SetThreadName("cubicml-leases");
  const std::stop_callback wake(stop, [this] {
    // Not between the loop's look at the token and its wait.
    { MutexLock lock(&mu_); }
    stopped_.NotifyAll();
  });
  while (!stop.stop_requested()) {
    {
      MutexLock lock(&mu_);
      if (!stop.stop_requested()) stopped_.WaitFor(&mu_, options_.interval);
    }
    if (stop.stop_requested()) break;
    LookAtLeases();
    ForgetRequests();
  }
}

void TrainingLoop::LookAtLeases() {
  const absl::StatusOr<int> expired = service_->ExpireLeases();
  if (expired.ok()) return;
  CUBICML_LOG(WARNING) << "leases could not be looked at"
                       << Field("why", expired.status().ToString());
}

void TrainingLoop::ForgetRequests() {
  const absl::StatusOr<int64_t> forgotten = service_->ForgetOldRequests();
  if (forgotten.ok()) return;
  CUBICML_LOG(WARNING) << "old requests could not be forgotten"
                       << Field("why", forgotten.status().ToString());
}

}  // namespace cubicml
