// SPDX-License-Identifier: Apache-2.0
//
// The C++ client of a CubicML server. Most programs need two calls:
//
//   CUBICML_ASSIGN_OR_RETURN(auto client, TuningClient::Create(
//                                             {.server = "tuner:7264"}));
//   CUBICML_ASSIGN_OR_RETURN(TrialHandle trial,
//                            client->StartTrial({.study = "ads"}));
//   ... train with trial.Get<int64_t>("batch_size") ...
//   trial.Complete({{"qps", qps}});
//
// Complete program: client/examples/minimise_quadratic.cc.

#ifndef CUBICML_CLIENT_TUNING_CLIENT_H_
#define CUBICML_CLIENT_TUNING_CLIENT_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cubicml/client/trial_handle.h"
#include "cubicml/client/tuning_client_options.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

struct ClientSession;

// What a job asks for when it starts.
struct StartTrialOptions {
  // Id or name: "ads" or "studies/ads".
  std::string study = {};
  Values context = {};
  // Parameters that the job has decided already.
  Values fixed_parameters = {};
  // Who asks, stable over restarts: a job that asks again after a crash gets
  // its trial back. Two trials at a time need two ids. Empty: nameless.
  std::string client_id = {};
  v1::SuggestTrialsRequest::Mode mode = v1::SuggestTrialsRequest::EXPLORE;
  std::map<std::string, std::string> labels = {};
  // Until there is a configuration. Zero: the client's.
  absl::Duration timeout = absl::ZeroDuration();
};

// Thread-safe. Cheap to keep, expensive to make: one for each process and
// server is right.
//
// Every call has a deadline and is repeated, with growing waits, when that can
// help and cannot do harm: UNAVAILABLE, a RESOURCE_EXHAUSTED that says when to
// come back, and lost connections. A call that changes something is given a
// request_id, unless it has one, which its repetitions share, so the service
// carries it out once. ImportTrials has none and is not repeated.
//
// Errors are the service's (tuning_service.proto), with the call and the
// address of the server before the message; UNAVAILABLE and DEADLINE_EXCEEDED
// mean that the server was not reached or did not answer in time. errors.h
// reads their details.
class TuningClient {
 public:
  // Does not connect yet. INVALID_ARGUMENT for options that make no sense.
  static absl::StatusOr<std::unique_ptr<TuningClient>> Create(
      TuningClientOptions options);
  ~TuningClient();

  // Waits until the server can be reached; UNAVAILABLE when it cannot in time.
  absl::Status WaitForServer(absl::Duration timeout);

  // Asks for a configuration, until there is one or the time is over. Beside
  // the service's errors: OUT_OF_RANGE when every valid configuration has been
  // tried, FAILED_PRECONDITION when the constraints leave none for this
  // context, UNAVAILABLE when the service was busy until the end.
  absl::StatusOr<TrialHandle> StartTrial(const StartTrialOptions& options);

  // The calls of cubicml.v1.TuningService.
  absl::StatusOr<v1::Study> CreateStudy(v1::CreateStudyRequest request,
                                        CallOptions options = {});
  absl::StatusOr<v1::Study> GetStudy(const v1::GetStudyRequest& request,
                                     CallOptions options = {});
  absl::StatusOr<v1::ListStudiesResponse> ListStudies(
      const v1::ListStudiesRequest& request, CallOptions options = {});
  absl::StatusOr<v1::Study> UpdateStudy(v1::UpdateStudyRequest request,
                                        CallOptions options = {});
  absl::Status DeleteStudy(v1::DeleteStudyRequest request,
                           CallOptions options = {});
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      v1::SuggestTrialsRequest request, CallOptions options = {});
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request, CallOptions options = {});
  absl::StatusOr<v1::Trial> CompleteTrial(v1::CompleteTrialRequest request,
                                          CallOptions options = {});
  absl::StatusOr<v1::Trial> CancelTrial(v1::CancelTrialRequest request,
                                        CallOptions options = {});
  absl::StatusOr<v1::Trial> GetTrial(const v1::GetTrialRequest& request,
                                     CallOptions options = {});
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request, CallOptions options = {});
  absl::StatusOr<v1::ListOptimalTrialsResponse> ListOptimalTrials(
      const v1::ListOptimalTrialsRequest& request, CallOptions options = {});
  absl::StatusOr<v1::PredictResponse> Predict(const v1::PredictRequest& request,
                                              CallOptions options = {});

  // Sends measurements of jobs that the service did not hand out, as a stream
  // of messages of a bounded size. The timeout is for the whole stream.
  absl::StatusOr<v1::ImportTrialsResponse> ImportTrials(
      const std::string& study_name, std::span<const v1::Trial> trials,
      CallOptions options = {});

  // Calls `take` with each trial that the filter lets through, by number. When
  // the connection is lost it goes on after the last one. An error of `take`
  // ends the stream and is returned. The timeout is for the time between two
  // trials, not for all of them.
  absl::Status ExportTrials(
      const v1::ExportTrialsRequest& request,
      const std::function<absl::Status(const v1::Trial&)>& take,
      CallOptions options = {});

 private:
  explicit TuningClient(std::shared_ptr<ClientSession> session);
  const std::shared_ptr<ClientSession> session_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_TUNING_CLIENT_H_
