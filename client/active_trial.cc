// SPDX-License-Identifier: Apache-2.0

#include "client/active_trial.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/request_id.h"

namespace cubicml {
namespace {

using Stub = v1::TuningService::StubInterface;

// A heartbeat is one attempt: the loop itself comes back.
constexpr absl::Duration kHeartbeatTimeout = absl::Seconds(10);

// The service ends heartbeats of trials that have ended. Only a trial that
// somebody cancelled need not go on: the result of an expired one still counts.
absl::StatusOr<v1::HeartbeatResponse> SendHeartbeat(
    ServerConnection* connection, const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response;
  const absl::Status status = connection->Once(
      "Heartbeat", &Stub::Heartbeat, request, kHeartbeatTimeout, &response);
  if (status.ok()) return response;
  if (!absl::IsFailedPrecondition(status)) return status;
  v1::GetTrialRequest get;
  get.set_name(request.name());
  v1::Trial trial;
  const absl::Status found = connection->Once("GetTrial", &Stub::GetTrial, get,
                                              kHeartbeatTimeout, &trial);
  if (found.ok() && trial.state() == v1::Trial::CANCELLED) {
    response.set_should_stop(true);
    response.mutable_lease()->set_seconds(absl::ToInt64Seconds(absl::Hours(1)));
    return response;
  }
  return status;
}

absl::Duration LeaseOf(const v1::Trial& trial) {
  // The server's clock on both sides: ours may differ.
  return absl::Seconds(trial.lease_expire_time().seconds() -
                       trial.update_time().seconds()) +
         absl::Nanoseconds(trial.lease_expire_time().nanos() -
                           trial.update_time().nanos());
}

}  // namespace

ClientSession::ClientSession(TuningClientOptions options)
    : connection(std::move(options)),
      heartbeats(
          [this](const v1::HeartbeatRequest& request) {
            return SendHeartbeat(&connection, request);
          },
          &clock) {}

absl::StatusOr<v1::Trial> SendCompletion(ServerConnection* connection,
                                         v1::CompleteTrialRequest request,
                                         absl::Duration timeout) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return connection->Call("CompleteTrial", &Stub::CompleteTrial, request,
                          Repeatable::kYes, timeout);
}

ActiveTrial::ActiveTrial(std::shared_ptr<ClientSession> session,
                         v1::Trial trial)
    : session_(std::move(session)),
      trial_(std::move(trial)),
      held_(std::make_shared<HeldTrial>(trial_.name(), trial_.client_id())) {
  session_->heartbeats.Add(held_, LeaseOf(trial_));
  session_->heartbeats.Start();
}

ActiveTrial::~ActiveTrial() {
  v1::CompleteTrialRequest request;
  request.set_state(v1::Trial::ABANDONED);
  request.set_reason(v1::Trial::OTHER);
  request.set_reason_detail("the client dropped the trial without an outcome");
  // Best effort: when it fails, the lease runs out and says the same.
  End(std::move(request), session_->connection.options().abandon_timeout)
      .status()
      .IgnoreError();
  session_->heartbeats.Remove(held_.get());
}

void ActiveTrial::Report(v1::IntermediateMeasurement intermediate) {
  held_->SetIntermediate(std::move(intermediate));
  session_->heartbeats.Hurry(held_.get());
}

absl::StatusOr<v1::Trial> ActiveTrial::End(v1::CompleteTrialRequest request,
                                           absl::Duration timeout) {
  MutexLock lock(&mu_);
  if (ended_) {
    return absl::FailedPreconditionError(
        absl::StrCat(trial_.name(), " has ended already"));
  }
  request.set_name(trial_.name());
  request.set_client_id(trial_.client_id());
  absl::StatusOr<v1::Trial> ended =
      SendCompletion(&session_->connection, std::move(request), timeout);
  // It has ended for somebody else, or is gone: nothing is left to report.
  const bool lost = absl::IsFailedPrecondition(ended.status()) ||
                    absl::IsNotFound(ended.status());
  if (ended.ok() || lost) {
    ended_ = true;
    session_->heartbeats.Remove(held_.get());
  }
  return ended;
}

void ActiveTrial::Release() {
  MutexLock lock(&mu_);
  ended_ = true;
  session_->heartbeats.Remove(held_.get());
}

}  // namespace cubicml
