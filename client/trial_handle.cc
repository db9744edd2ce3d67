// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/trial_handle.h"

#include <utility>

#include "client/active_trial.h"

namespace cubicml {
namespace {

v1::CompleteTrialRequest MakeCompletion(v1::Trial::State state,
                                        const Metrics& metrics) {
  v1::CompleteTrialRequest request;
  request.set_state(state);
  request.mutable_metrics()->insert(metrics.begin(), metrics.end());
  return request;
}

}  // namespace

TrialHandle::TrialHandle(std::unique_ptr<ActiveTrial> trial)
    : trial_(std::move(trial)) {}
TrialHandle::TrialHandle(TrialHandle&& other) noexcept = default;
TrialHandle& TrialHandle::operator=(TrialHandle&& other) noexcept = default;
TrialHandle::~TrialHandle() = default;

const v1::Trial& TrialHandle::trial() const { return trial_->trial(); }

bool TrialHandle::should_stop() const { return trial_->should_stop(); }

void TrialHandle::Report(int64_t step, const Metrics& metrics) {
  v1::IntermediateMeasurement intermediate;
  intermediate.set_step(step);
  intermediate.mutable_metrics()->insert(metrics.begin(), metrics.end());
  trial_->Report(std::move(intermediate));
}

absl::StatusOr<v1::Trial> TrialHandle::Complete(const Metrics& metrics) {
  return trial_->End(MakeCompletion(v1::Trial::SUCCEEDED, metrics),
                     absl::ZeroDuration());
}

absl::StatusOr<v1::Trial> TrialHandle::Fail(v1::Trial::Reason reason,
                                            absl::string_view detail,
                                            const Metrics& metrics) {
  v1::CompleteTrialRequest request =
      MakeCompletion(v1::Trial::INFEASIBLE, metrics);
  request.set_reason(reason);
  request.set_reason_detail(std::string(detail));
  return trial_->End(std::move(request), absl::ZeroDuration());
}

absl::StatusOr<v1::Trial> TrialHandle::Abandon(v1::Trial::Reason reason,
                                               absl::string_view detail) {
  v1::CompleteTrialRequest request = MakeCompletion(v1::Trial::ABANDONED, {});
  request.set_reason(reason);
  request.set_reason_detail(std::string(detail));
  return trial_->End(std::move(request), absl::ZeroDuration());
}

void TrialHandle::Release() { trial_->Release(); }

}  // namespace cubicml
