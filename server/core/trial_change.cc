// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_change.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/request_check.h"
#include "server/core/time_proto.h"
#include "server/core/trial_state.h"

namespace cubicml {
namespace {

constexpr absl::string_view kAlreadySoUrl = "cubicml/already_so";

absl::Status CheckHolder(const v1::Trial& trial, const std::string& client_id) {
  if (trial.client_id().empty() || trial.client_id() == client_id) {
    return absl::OkStatus();
  }
  // Whoever held it, nobody can change it any more.
  if (!IsHeld(trial.state()) && trial.state() != v1::Trial::EXPIRED) {
    return EndedError(trial);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(trial.name(), " is held by another client than client_id"));
}

bool SameMetrics(const MetricMap& a, const MetricMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    const auto it = b.find(name);
    if (it == b.end() || it->second != value) return false;
  }
  return true;
}

v1::Trial::Reason CompletionReason(const v1::CompleteTrialRequest& request) {
  if (request.state() == v1::Trial::INFEASIBLE &&
      request.reason() == v1::Trial::REASON_UNSPECIFIED) {
    return v1::Trial::OTHER;
  }
  return request.reason();
}

// The trial has ended in the way that the request asks for. What the service
// itself made of the measurement is no difference.
bool IsSameCompletion(const v1::CompleteTrialRequest& request,
                      const v1::Trial& trial) {
  if (!SameMetrics(request.metrics(), trial.metrics())) return false;
  if (request.state() == v1::Trial::SUCCEEDED &&
      trial.state() == v1::Trial::INFEASIBLE) {
    return trial.reason() == v1::Trial::METRIC_CONSTRAINT ||
           trial.reason() == v1::Trial::NO_MEASUREMENT;
  }
  return request.state() == trial.state() &&
         CompletionReason(request) == trial.reason() &&
         request.reason_detail() == trial.reason_detail();
}

}  // namespace

absl::Status AlreadySo() {
  absl::Status status(absl::StatusCode::kAlreadyExists, "nothing to change");
  status.SetPayload(kAlreadySoUrl, absl::Cord());
  return status;
}

bool IsAlreadySo(const absl::Status& status) {
  return status.GetPayload(kAlreadySoUrl).has_value();
}

absl::Status CheckCompletion(const v1::CompleteTrialRequest& request,
                             const StudyDefinition& definition) {
  CUBICML_RETURN_IF_ERROR(
      CheckText("client_id", request.client_id(), kMaxClientIdBytes));
  if (request.state() != v1::Trial::SUCCEEDED &&
      request.state() != v1::Trial::INFEASIBLE &&
      request.state() != v1::Trial::ABANDONED) {
    return FieldError("state", "must be SUCCEEDED, INFEASIBLE or ABANDONED");
  }
  if (!v1::Trial::Reason_IsValid(request.reason()) ||
      !ReasonFits(request.reason(), request.state())) {
    return FieldError("reason",
                      absl::StrCat("does not fit the state ",
                                   v1::Trial::State_Name(request.state())));
  }
  CUBICML_RETURN_IF_ERROR(CheckText("reason_detail", request.reason_detail(),
                                    kMaxReasonDetailBytes));
  CUBICML_RETURN_IF_ERROR(definition.CheckMetrics(request.metrics()));
  if (request.state() != v1::Trial::SUCCEEDED ||
      !definition.HasAnyObjective(request.metrics())) {
    return absl::OkStatus();
  }
  const std::string missing = definition.MissingObjective(request.metrics());
  if (missing.empty()) return absl::OkStatus();
  return FieldError(absl::StrCat("metrics.", missing),
                    absl::StrCat("'", missing,
                                 "' is missing; SUCCEEDED needs every "
                                 "objective"));
}

absl::Status ApplyCompletion(const v1::CompleteTrialRequest& request,
                             const StudyDefinition& definition,
                             const BaselineMetrics& baseline, absl::Time now,
                             v1::Trial* trial) {
  CUBICML_RETURN_IF_ERROR(CheckHolder(*trial, request.client_id()));
  if (!IsHeld(trial->state()) && IsSameCompletion(request, *trial)) {
    return AlreadySo();
  }
  CUBICML_RETURN_IF_ERROR(
      CheckTransition(*trial, request.state(), "CompleteTrial"));
  // A lost trial that is found again is late, one that stays lost is not.
  trial->set_late(trial->state() == v1::Trial::EXPIRED &&
                  IsMeasured(request.state()));
  trial->set_state(request.state());
  trial->set_reason(CompletionReason(request));
  trial->set_reason_detail(request.reason_detail());
  *trial->mutable_metrics() = request.metrics();
  *trial->mutable_end_time() = TimeToProto(now);
  trial->clear_lease_expire_time();
  if (request.state() != v1::Trial::SUCCEEDED) return absl::OkStatus();
  if (!definition.HasAnyObjective(request.metrics())) {
    trial->set_state(v1::Trial::INFEASIBLE);
    trial->set_reason(v1::Trial::NO_MEASUREMENT);
    return absl::OkStatus();
  }
  ApplyMetricConstraints(definition, baseline, trial);
  return absl::OkStatus();
}

void ApplyMetricConstraints(const StudyDefinition& definition,
                            const BaselineMetrics& baseline, v1::Trial* trial) {
  if (trial->state() != v1::Trial::SUCCEEDED) return;
  const std::optional<std::string> violation =
      definition.FindViolation(trial->metrics(), baseline);
  const std::string missing = definition.MissingConstrained(trial->metrics());
  if (violation.has_value()) {
    trial->set_reason(v1::Trial::METRIC_CONSTRAINT);
    trial->set_reason_detail(*violation);
  } else if (!missing.empty()) {
    trial->set_reason(v1::Trial::NO_MEASUREMENT);
    trial->set_reason_detail(
        absl::StrCat(missing, " has a constraint and was not measured"));
  } else {
    return;
  }
  trial->set_state(v1::Trial::INFEASIBLE);
}

absl::Status CheckHeartbeat(const v1::HeartbeatRequest& request,
                            const StudyDefinition& definition) {
  CUBICML_RETURN_IF_ERROR(
      CheckText("client_id", request.client_id(), kMaxClientIdBytes));
  if (!request.has_intermediate()) return absl::OkStatus();
  if (request.intermediate().step() < 0) {
    return FieldError("intermediate.step", "must not be negative");
  }
  return WithFieldPrefix(
      definition.CheckMetrics(request.intermediate().metrics()),
      "intermediate.");
}

absl::Status ApplyHeartbeat(const v1::HeartbeatRequest& request,
                            absl::Duration lease, bool revive, absl::Time now,
                            v1::Trial* trial) {
  CUBICML_RETURN_IF_ERROR(CheckHolder(*trial, request.client_id()));
  const v1::Trial::State state = trial->state();
  if (state == v1::Trial::CANCELLED ||
      (state == v1::Trial::EXPIRED && !revive)) {
    return AlreadySo();
  }
  const v1::Trial::State next =
      state == v1::Trial::STOPPING ? v1::Trial::STOPPING : v1::Trial::ACTIVE;
  CUBICML_RETURN_IF_ERROR(CheckTransition(*trial, next, "Heartbeat"));
  trial->set_state(next);
  trial->clear_end_time();
  *trial->mutable_lease_expire_time() = TimeToProto(now + lease);
  if (request.has_intermediate()) {
    *trial->mutable_intermediate() = request.intermediate();
    *trial->mutable_intermediate()->mutable_time() = TimeToProto(now);
  }
  return absl::OkStatus();
}

absl::Status ApplyRenewal(absl::Duration lease, absl::Time now,
                          v1::Trial* trial) {
  if (trial->state() != v1::Trial::ACTIVE) return AlreadySo();
  *trial->mutable_lease_expire_time() = TimeToProto(now + lease);
  return absl::OkStatus();
}

absl::Status ApplyCancellation(absl::Time now, v1::Trial* trial) {
  if (trial->state() == v1::Trial::CANCELLED) return AlreadySo();
  const v1::Trial::State next = trial->state() == v1::Trial::ACTIVE
                                    ? v1::Trial::STOPPING
                                    : v1::Trial::CANCELLED;
  CUBICML_RETURN_IF_ERROR(CheckTransition(*trial, next, "CancelTrial"));
  trial->set_state(next);
  if (next == v1::Trial::CANCELLED) {
    trial->clear_lease_expire_time();
    *trial->mutable_end_time() = TimeToProto(now);
  }
  return absl::OkStatus();
}

absl::Status ApplyExpiry(absl::Time seen, absl::Time now, v1::Trial* trial) {
  if (!IsHeld(trial->state()) ||
      TimeFromProto(trial->lease_expire_time()) > seen) {
    return AlreadySo();
  }
  trial->set_state(trial->state() == v1::Trial::STOPPING ? v1::Trial::CANCELLED
                                                         : v1::Trial::EXPIRED);
  trial->clear_lease_expire_time();
  *trial->mutable_end_time() = TimeToProto(now);
  return absl::OkStatus();
}

}  // namespace cubicml
