// SPDX-License-Identifier: Apache-2.0
//
// A server in this process, with one rule for everything: studies are kept,
// suggestions are what the client holds already, then in each context the
// baseline and the defaults with integer parameters set to the trial's number,
// without conditional parameters. Results are kept, and judged by the maximum
// of metric constraints. Failures are injected by method.

#ifndef CUBICML_TESTS_CLIENT_FAKE_TUNING_SERVICE_H_
#define CUBICML_TESTS_CLIENT_FAKE_TUNING_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"

namespace cubicml {

// INVALID_ARGUMENT with google.rpc.BadRequest, as the server sends it.
grpc::Status FieldStatus(const std::string& field, const std::string& message);
// The code with google.rpc.RetryInfo.
grpc::Status RetryStatus(grpc::StatusCode code, absl::Duration delay);

// Thread-safe.
class FakeTuningService final : public v1::TuningService::Service {
 public:
  // The next calls of the method fail with these, one after the other.
  void FailNext(const std::string& method, std::vector<grpc::Status> statuses);
  // Answers are carried out, but lost on the way back: UNAVAILABLE.
  void LoseNextAnswer(const std::string& method);
  // Calls of the method wait before they are carried out, until Unblock().
  void Block(const std::string& method);
  void Unblock();
  // The study is exhausted after this many trials.
  void SetMaxTrials(int count);
  void SetLease(absl::Duration lease);
  void RequestStop();  // of every trial
  void CancelAll();    // trials; their heartbeats are FAILED_PRECONDITION

  int calls(const std::string& method) const;
  std::vector<v1::CompleteTrialRequest> completions() const;
  std::vector<v1::HeartbeatRequest> heartbeats() const;
  std::vector<v1::SuggestTrialsRequest> suggestions() const;
  std::vector<v1::Trial> imported() const;
  // How often completions were carried out, repeated request_ids counted once.
  int carried_out() const;
  // Waits until the method has been called this often.
  void AwaitCalls(const std::string& method, int count) const;

  grpc::Status CreateStudy(grpc::ServerContext* context,
                           const v1::CreateStudyRequest* request,
                           v1::Study* response) override;
  grpc::Status GetStudy(grpc::ServerContext* context,
                        const v1::GetStudyRequest* request,
                        v1::Study* response) override;
  grpc::Status ListStudies(grpc::ServerContext* context,
                           const v1::ListStudiesRequest* request,
                           v1::ListStudiesResponse* response) override;
  grpc::Status UpdateStudy(grpc::ServerContext* context,
                           const v1::UpdateStudyRequest* request,
                           v1::Study* response) override;
  grpc::Status DeleteStudy(grpc::ServerContext* context,
                           const v1::DeleteStudyRequest* request,
                           google::protobuf::Empty* response) override;
  grpc::Status SuggestTrials(grpc::ServerContext* context,
                             const v1::SuggestTrialsRequest* request,
                             v1::SuggestTrialsResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext* context,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override;
  grpc::Status CompleteTrial(grpc::ServerContext* context,
                             const v1::CompleteTrialRequest* request,
                             v1::Trial* response) override;
  grpc::Status CancelTrial(grpc::ServerContext* context,
                           const v1::CancelTrialRequest* request,
                           v1::Trial* response) override;
  grpc::Status ImportTrials(grpc::ServerContext* context,
                            grpc::ServerReader<v1::ImportTrialsRequest>* reader,
                            v1::ImportTrialsResponse* response) override;
  grpc::Status GetTrial(grpc::ServerContext* context,
                        const v1::GetTrialRequest* request,
                        v1::Trial* response) override;
  grpc::Status ListTrials(grpc::ServerContext* context,
                          const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override;
  grpc::Status ExportTrials(grpc::ServerContext* context,
                            const v1::ExportTrialsRequest* request,
                            grpc::ServerWriter<v1::Trial>* writer) override;
  grpc::Status ListOptimalTrials(
      grpc::ServerContext* context, const v1::ListOptimalTrialsRequest* request,
      v1::ListOptimalTrialsResponse* response) override;
  grpc::Status Predict(grpc::ServerContext* context,
                       const v1::PredictRequest* request,
                       v1::PredictResponse* response) override;

 private:
  // Counts the call; what was injected for it.
  grpc::Status Enter(const std::string& method)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  grpc::Status Leave(const std::string& method)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::Trial NewTrial(const v1::SuggestTrialsRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::Trial* FindTrial(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  mutable CondVar called_;
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::deque<grpc::Status>> failures_
      ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> lost_answers_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> blocked_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, v1::Study> studies_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::Trial> trials_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, v1::Trial> answers_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::CompleteTrialRequest> completions_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::HeartbeatRequest> heartbeats_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::SuggestTrialsRequest> suggestions_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::Trial> imported_ ABSL_GUARDED_BY(mu_);
  int max_trials_ ABSL_GUARDED_BY(mu_) = 1 << 20;
  absl::Duration lease_ ABSL_GUARDED_BY(mu_) = absl::Minutes(10);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

// A FakeTuningService on loopback.
class FakeServer {
 public:
  // Port 0 is one that is free.
  explicit FakeServer(FakeTuningService* service, int port = 0);
  ~FakeServer();

  int port() const { return port_; }
  std::string address() const;

 private:
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// qps is maximised over batch (1 to 1000, default 64), mode (a category) and
// layers (a vector of two), with the context field rows, the metric memory.
v1::Study ExampleStudy();

}  // namespace cubicml

#endif  // CUBICML_TESTS_CLIENT_FAKE_TUNING_SERVICE_H_
