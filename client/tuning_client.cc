// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/tuning_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/active_trial.h"
#include "client/request_id.h"
#include "client/server_connection.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

using Stub = v1::TuningService::StubInterface;

// A call that changes something, under an id that its repetitions share.
template <typename Request, typename Response>
absl::StatusOr<Response> Change(
    ServerConnection* connection, absl::string_view name,
    ServerConnection::Method<Request, Response> method, Request* request,
    const CallOptions& options) {
  if (request->request_id().empty()) request->set_request_id(NewRequestId());
  return connection->Call(name, method, *request, Repeatable::kYes,
                          options.timeout);
}

v1::SuggestTrialsRequest MakeSuggestRequest(const StartTrialOptions& options,
                                            std::string study_name) {
  v1::SuggestTrialsRequest request;
  request.set_parent(std::move(study_name));
  request.set_count(1);
  request.set_client_id(options.client_id);
  request.mutable_context()->insert(options.context.begin(),
                                    options.context.end());
  request.mutable_fixed_parameters()->insert(options.fixed_parameters.begin(),
                                             options.fixed_parameters.end());
  request.set_mode(options.mode);
  request.mutable_labels()->insert(options.labels.begin(),
                                   options.labels.end());
  return request;
}

absl::Status NoTrial(const v1::SuggestTrialsResponse& response,
                     absl::string_view study_name) {
  const std::string message =
      absl::StrCat(study_name, ": ", response.no_trial_detail());
  switch (response.no_trial_reason()) {
    case v1::SuggestTrialsResponse::EXHAUSTED:
      return absl::OutOfRangeError(message);
    case v1::SuggestTrialsResponse::NO_VALID_CONFIGURATION:
      return absl::FailedPreconditionError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::Duration RetryDelay(const v1::SuggestTrialsResponse& response) {
  const absl::Duration told = absl::Seconds(response.retry_delay().seconds()) +
                              absl::Nanoseconds(response.retry_delay().nanos());
  return std::max(told, absl::Milliseconds(10));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuningClient>> TuningClient::Create(
    TuningClientOptions options) {
  if (options.server.empty()) {
    return absl::InvalidArgumentError("server: must not be empty");
  }
  if (options.timeout <= absl::ZeroDuration() ||
      options.attempt_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("timeout: must be positive");
  }
  if (options.retry.max_attempts < 1 || options.retry.jitter < 0 ||
      options.retry.jitter > 1 || options.retry.backoff_multiplier < 1) {
    return absl::InvalidArgumentError(
        "retry: needs max_attempts >= 1, jitter from 0 to 1 and "
        "backoff_multiplier >= 1");
  }
  return std::unique_ptr<TuningClient>(
      new TuningClient(std::make_shared<ClientSession>(std::move(options))));
}

TuningClient::TuningClient(std::shared_ptr<ClientSession> session)
    : session_(std::move(session)) {}

TuningClient::~TuningClient() = default;

absl::Status TuningClient::WaitForServer(absl::Duration timeout) {
  return session_->connection.WaitForConnection(timeout);
}

absl::StatusOr<TrialHandle> TuningClient::StartTrial(
    const StartTrialOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(std::string study_name,
                           ParseStudyName(options.study));
  ServerConnection& connection = session_->connection;
  Waiter& waiter = connection.waiter();
  const absl::Duration deadline =
      waiter.Elapsed() + connection.TimeoutOr(options.timeout);
  v1::SuggestTrialsRequest request = MakeSuggestRequest(options, study_name);
  while (true) {
    // A new id each time: the answer "busy" must not be given again.
    request.set_request_id(NewRequestId());
    const absl::Duration remaining =
        std::max(deadline - waiter.Elapsed(), absl::Milliseconds(1));
    CUBICML_ASSIGN_OR_RETURN(
        v1::SuggestTrialsResponse response,
        connection.Call("SuggestTrials", &Stub::SuggestTrials, request,
                        Repeatable::kYes, remaining, remaining));
    if (response.trials_size() > 0) {
      return TrialHandle(std::make_unique<ActiveTrial>(
          session_, std::move(*response.mutable_trials(0))));
    }
    const absl::Duration delay = RetryDelay(response);
    if (response.no_trial_reason() != v1::SuggestTrialsResponse::BUSY ||
        waiter.Elapsed() + delay >= deadline) {
      return NoTrial(response, study_name);
    }
    waiter.Wait(delay);
  }
}

absl::StatusOr<v1::Study> TuningClient::CreateStudy(
    v1::CreateStudyRequest request, CallOptions options) {
  return Change(&session_->connection, "CreateStudy", &Stub::CreateStudy,
                &request, options);
}

absl::StatusOr<v1::Study> TuningClient::GetStudy(
    const v1::GetStudyRequest& request, CallOptions options) {
  return session_->connection.Call("GetStudy", &Stub::GetStudy, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::ListStudiesResponse> TuningClient::ListStudies(
    const v1::ListStudiesRequest& request, CallOptions options) {
  return session_->connection.Call("ListStudies", &Stub::ListStudies, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::Study> TuningClient::UpdateStudy(
    v1::UpdateStudyRequest request, CallOptions options) {
  return Change(&session_->connection, "UpdateStudy", &Stub::UpdateStudy,
                &request, options);
}

absl::Status TuningClient::DeleteStudy(v1::DeleteStudyRequest request,
                                       CallOptions options) {
  return Change(&session_->connection, "DeleteStudy", &Stub::DeleteStudy,
                &request, options)
      .status();
}

absl::StatusOr<v1::SuggestTrialsResponse> TuningClient::SuggestTrials(
    v1::SuggestTrialsRequest request, CallOptions options) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  // The service answers before the deadline, so an attempt may have it all.
  const absl::Duration timeout =
      session_->connection.TimeoutOr(options.timeout);
  return session_->connection.Call("SuggestTrials", &Stub::SuggestTrials,
                                   request, Repeatable::kYes, timeout, timeout);
}

absl::StatusOr<v1::HeartbeatResponse> TuningClient::Heartbeat(
    const v1::HeartbeatRequest& request, CallOptions options) {
  return session_->connection.Call("Heartbeat", &Stub::Heartbeat, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::Trial> TuningClient::CompleteTrial(
    v1::CompleteTrialRequest request, CallOptions options) {
  return SendCompletion(&session_->connection, std::move(request),
                        options.timeout);
}

absl::StatusOr<v1::Trial> TuningClient::CancelTrial(
    v1::CancelTrialRequest request, CallOptions options) {
  return Change(&session_->connection, "CancelTrial", &Stub::CancelTrial,
                &request, options);
}

absl::StatusOr<v1::Trial> TuningClient::GetTrial(
    const v1::GetTrialRequest& request, CallOptions options) {
  return session_->connection.Call("GetTrial", &Stub::GetTrial, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::ListTrialsResponse> TuningClient::ListTrials(
    const v1::ListTrialsRequest& request, CallOptions options) {
  return session_->connection.Call("ListTrials", &Stub::ListTrials, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::ListOptimalTrialsResponse> TuningClient::ListOptimalTrials(
    const v1::ListOptimalTrialsRequest& request, CallOptions options) {
  return session_->connection.Call("ListOptimalTrials",
                                   &Stub::ListOptimalTrials, request,
                                   Repeatable::kYes, options.timeout);
}

absl::StatusOr<v1::PredictResponse> TuningClient::Predict(
    const v1::PredictRequest& request, CallOptions options) {
  return session_->connection.Call("Predict", &Stub::Predict, request,
                                   Repeatable::kYes, options.timeout);
}

}  // namespace cubicml
