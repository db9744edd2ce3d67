// SPDX-License-Identifier: Apache-2.0

#include "tests/client/fake_tuning_service.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "client/cli/typed_values.h"
#include "cubicml/client/resource_names.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace cubicml {
namespace {

grpc::Status WithDetail(grpc::StatusCode code, const std::string& message,
                        const google::protobuf::Message& detail) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(message);
  status.add_details()->PackFrom(detail);
  return grpc::Status(code, message, status.SerializeAsString());
}

grpc::Status NotFound(const std::string& name) {
  return grpc::Status(grpc::StatusCode::NOT_FOUND, name + ": not found");
}

// Of the filters that the client makes itself: source = S and number > N.
bool Matches(const std::string& filter, const v1::Trial& trial) {
  constexpr absl::string_view kSource = "source = ";
  if (const size_t found = filter.find(std::string(kSource));
      found != std::string::npos) {
    const std::string rest = filter.substr(found + kSource.size());
    const std::string word = rest.substr(0, rest.find_first_of(" )"));
    if (v1::Trial::Source_Name(trial.suggestion().source()) != word) {
      return false;
    }
  }
  const size_t found = filter.rfind("number > ");
  if (found == std::string::npos) return true;
  int64_t number = 0;
  CUBICML_CHECK(absl::SimpleAtoi(filter.substr(found + 9), &number));
  return TrialNumberOf(trial.name()) > number;
}

// Of the bounds only max, as it stands.
void Judge(const v1::Study& study, v1::Trial* trial) {
  if (trial->state() != v1::Trial::SUCCEEDED) return;
  for (const v1::MetricConstraint& constraint : study.metric_constraints()) {
    const auto found = trial->metrics().find(constraint.metric());
    if (found != trial->metrics().end() && found->second <= constraint.max()) {
      continue;
    }
    trial->set_state(v1::Trial::INFEASIBLE);
    trial->set_reason(found == trial->metrics().end()
                          ? v1::Trial::NO_MEASUREMENT
                          : v1::Trial::METRIC_CONSTRAINT);
    return;
  }
}

}  // namespace

grpc::Status FieldStatus(const std::string& field, const std::string& message) {
  google::rpc::BadRequest detail;
  google::rpc::BadRequest::FieldViolation* violation =
      detail.add_field_violations();
  violation->set_field(field);
  violation->set_description(message);
  return WithDetail(grpc::StatusCode::INVALID_ARGUMENT,
                    absl::StrCat(field, ": ", message), detail);
}

grpc::Status RetryStatus(grpc::StatusCode code, absl::Duration delay) {
  google::rpc::RetryInfo detail;
  detail.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  return WithDetail(code, "overloaded", detail);
}

void FakeTuningService::FailNext(const std::string& method,
                                 std::vector<grpc::Status> statuses) {
  MutexLock lock(&mu_);
  failures_[method].assign(statuses.begin(), statuses.end());
}

void FakeTuningService::LoseNextAnswer(const std::string& method) {
  MutexLock lock(&mu_);
  ++lost_answers_[method];
}

void FakeTuningService::Block(const std::string& method) {
  MutexLock lock(&mu_);
  blocked_.insert(method);
}

void FakeTuningService::Unblock() {
  MutexLock lock(&mu_);
  blocked_.clear();
  called_.NotifyAll();
}

void FakeTuningService::SetMaxTrials(int count) {
  MutexLock lock(&mu_);
  max_trials_ = count;
}

void FakeTuningService::SetLease(absl::Duration lease) {
  MutexLock lock(&mu_);
  lease_ = lease;
}

void FakeTuningService::RequestStop() {
  MutexLock lock(&mu_);
  stop_ = true;
}

void FakeTuningService::CancelAll() {
  MutexLock lock(&mu_);
  cancelled_ = true;
  for (v1::Trial& trial : trials_) trial.set_state(v1::Trial::CANCELLED);
}

int FakeTuningService::calls(const std::string& method) const {
  MutexLock lock(&mu_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<v1::CompleteTrialRequest> FakeTuningService::completions() const {
  MutexLock lock(&mu_);
  return completions_;
}

std::vector<v1::HeartbeatRequest> FakeTuningService::heartbeats() const {
  MutexLock lock(&mu_);
  return heartbeats_;
}

std::vector<v1::SuggestTrialsRequest> FakeTuningService::suggestions() const {
  MutexLock lock(&mu_);
  return suggestions_;
}

std::vector<v1::Trial> FakeTuningService::imported() const {
  MutexLock lock(&mu_);
  return imported_;
}

int FakeTuningService::carried_out() const {
  MutexLock lock(&mu_);
  return static_cast<int>(answers_.size());
}

void FakeTuningService::AwaitCalls(const std::string& method, int count) const {
  MutexLock lock(&mu_);
  while (true) {
    const auto found = calls_.find(method);
    if (found != calls_.end() && found->second >= count) return;
    called_.Wait(&mu_);
  }
}

grpc::Status FakeTuningService::Enter(const std::string& method) {
  ++calls_[method];
  called_.NotifyAll();
  while (blocked_.count(method) > 0) called_.Wait(&mu_);
  std::deque<grpc::Status>& failures = failures_[method];
  if (failures.empty()) return grpc::Status::OK;
  const grpc::Status status = failures.front();
  failures.pop_front();
  return status;
}

grpc::Status FakeTuningService::Leave(const std::string& method) {
  int& lost = lost_answers_[method];
  if (lost == 0) return grpc::Status::OK;
  --lost;
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer was lost");
}

grpc::Status FakeTuningService::CreateStudy(
    grpc::ServerContext*, const v1::CreateStudyRequest* request,
    v1::Study* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("CreateStudy"); !status.ok()) return status;
  const std::string name = "studies/" + request->study_id();
  *response = request->study();
  response->set_name(name);
  response->set_etag("1");
  if (request->validate_only()) return Leave("CreateStudy");
  // The same study once more is no mistake.
  const v1::Study& stored = studies_.emplace(name, *response).first->second;
  if (!google::protobuf::util::MessageDifferencer::Equals(stored, *response)) {
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS,
                        name + " exists with another definition");
  }
  return Leave("CreateStudy");
}

grpc::Status FakeTuningService::GetStudy(grpc::ServerContext*,
                                         const v1::GetStudyRequest* request,
                                         v1::Study* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("GetStudy"); !status.ok()) return status;
  const auto found = studies_.find(request->name());
  if (found == studies_.end()) return NotFound(request->name());
  *response = found->second;
  v1::StudyProgress* progress = response->mutable_progress();
  progress->set_trials(static_cast<int64_t>(trials_.size()));
  if (!completions_.empty() && completions_[0].metrics().count("qps") > 0) {
    progress->set_baseline_objective(completions_[0].metrics().at("qps"));
  }
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::ListStudies(
    grpc::ServerContext*, const v1::ListStudiesRequest* request,
    v1::ListStudiesResponse* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("ListStudies"); !status.ok()) return status;
  // Pages of one, so that paging is always tried.
  const auto found = studies_.upper_bound(request->page_token());
  if (found == studies_.end()) return grpc::Status::OK;
  *response->add_studies() = found->second;
  if (std::next(found) != studies_.end()) {
    response->set_next_page_token(found->first);
  }
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::UpdateStudy(
    grpc::ServerContext*, const v1::UpdateStudyRequest* request,
    v1::Study* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("UpdateStudy"); !status.ok()) return status;
  v1::Study& study = studies_[request->study().name()];
  for (const std::string& path : request->update_mask().paths()) {
    if (path == "display_name") {
      study.set_display_name(request->study().display_name());
    } else if (path == "parameters") {
      *study.mutable_parameters() = request->study().parameters();
    } else if (path == "metric_constraints") {
      *study.mutable_metric_constraints() =
          request->study().metric_constraints();
    }
  }
  *response = study;
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::DeleteStudy(
    grpc::ServerContext*, const v1::DeleteStudyRequest* request,
    google::protobuf::Empty*) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("DeleteStudy"); !status.ok()) return status;
  if (studies_.erase(request->name()) == 0) return NotFound(request->name());
  return grpc::Status::OK;
}

v1::Trial FakeTuningService::NewTrial(const v1::SuggestTrialsRequest& request) {
  v1::Trial trial;
  const int64_t number = static_cast<int64_t>(trials_.size()) + 1;
  trial.set_name(absl::StrCat(request.parent(), "/trials/", number));
  trial.set_state(v1::Trial::ACTIVE);
  trial.set_client_id(request.client_id());
  trial.set_attempt(1);
  *trial.mutable_context() = request.context();
  const bool first =
      std::none_of(trials_.begin(), trials_.end(), [&](const v1::Trial& other) {
        return SameValues(other.context(), trial.context());
      });
  const bool remeasure =
      request.mode() == v1::SuggestTrialsRequest::REMEASURE_BASELINE;
  for (const v1::Parameter& parameter :
       studies_[request.parent()].parameters()) {
    if (!parameter.active_if().empty()) continue;
    v1::Value value = DefaultOf(parameter);
    if (parameter.has_integer() && !first && !remeasure) {
      value.set_int64_value(number);
    }
    (*trial.mutable_parameters())[parameter.name()] = std::move(value);
  }
  for (const auto& [name, value] : request.fixed_parameters()) {
    (*trial.mutable_parameters())[name] = value;
  }
  const bool again = request.mode() == v1::SuggestTrialsRequest::EXPLOIT ||
                     (remeasure && !first);
  trial.mutable_suggestion()->set_source(again   ? v1::Trial::REPEAT
                                         : first ? v1::Trial::BASELINE
                                                 : v1::Trial::SEARCH);
  trial.mutable_update_time()->set_seconds(1'700'000'000);
  const absl::Time expires = absl::FromUnixSeconds(1'700'000'000) + lease_;
  trial.mutable_lease_expire_time()->set_seconds(absl::ToUnixSeconds(expires));
  trial.mutable_lease_expire_time()->set_nanos(
      static_cast<int32_t>(absl::ToUnixNanos(expires) % 1'000'000'000));
  return trial;
}

v1::Trial* FakeTuningService::FindTrial(const std::string& name) {
  for (v1::Trial& trial : trials_) {
    if (trial.name() == name) return &trial;
  }
  return nullptr;
}

grpc::Status FakeTuningService::SuggestTrials(
    grpc::ServerContext*, const v1::SuggestTrialsRequest* request,
    v1::SuggestTrialsResponse* response) {
  MutexLock lock(&mu_);
  suggestions_.push_back(*request);
  if (grpc::Status status = Enter("SuggestTrials"); !status.ok()) {
    return status;
  }
  if (studies_.count(request->parent()) == 0) {
    return NotFound(request->parent());
  }
  const int count = std::max(1, request->count());
  for (const v1::Trial& trial : trials_) {
    if (response->trials_size() == count) break;
    if (!request->client_id().empty() &&
        trial.client_id() == request->client_id() &&
        trial.state() == v1::Trial::ACTIVE) {
      *response->add_trials() = trial;
    }
  }
  while (response->trials_size() < count) {
    if (static_cast<int>(trials_.size()) >= max_trials_) {
      response->set_no_trial_reason(v1::SuggestTrialsResponse::EXHAUSTED);
      response->set_no_trial_detail("everything has been tried");
      break;
    }
    trials_.push_back(NewTrial(*request));
    *response->add_trials() = trials_.back();
  }
  return Leave("SuggestTrials");
}

grpc::Status FakeTuningService::Heartbeat(grpc::ServerContext*,
                                          const v1::HeartbeatRequest* request,
                                          v1::HeartbeatResponse* response) {
  MutexLock lock(&mu_);
  heartbeats_.push_back(*request);
  if (grpc::Status status = Enter("Heartbeat"); !status.ok()) return status;
  if (FindTrial(request->name()) == nullptr) return NotFound(request->name());
  if (cancelled_) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "has ended");
  }
  response->mutable_lease()->set_seconds(absl::ToInt64Seconds(lease_));
  response->mutable_lease()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(lease_) % 1'000'000'000));
  response->set_should_stop(stop_);
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::CompleteTrial(
    grpc::ServerContext*, const v1::CompleteTrialRequest* request,
    v1::Trial* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("CompleteTrial"); !status.ok()) {
    return status;
  }
  if (answers_.count(request->request_id()) == 0) {
    v1::Trial* trial = FindTrial(request->name());
    if (trial == nullptr) return NotFound(request->name());
    trial->set_state(request->state());
    trial->set_reason(request->reason());
    trial->set_reason_detail(request->reason_detail());
    *trial->mutable_metrics() = request->metrics();
    const std::string& name = request->name();
    Judge(studies_[name.substr(0, name.find("/trials/"))], trial);
    answers_[request->request_id()] = *trial;
    completions_.push_back(*request);
  }
  *response = answers_[request->request_id()];
  return Leave("CompleteTrial");
}

grpc::Status FakeTuningService::CancelTrial(
    grpc::ServerContext*, const v1::CancelTrialRequest* request,
    v1::Trial* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("CancelTrial"); !status.ok()) return status;
  v1::Trial* trial = FindTrial(request->name());
  if (trial == nullptr) return NotFound(request->name());
  trial->set_state(v1::Trial::CANCELLED);
  *response = *trial;
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::ImportTrials(
    grpc::ServerContext*, grpc::ServerReader<v1::ImportTrialsRequest>* reader,
    v1::ImportTrialsResponse* response) {
  v1::ImportTrialsRequest request;
  while (reader->Read(&request)) {
    MutexLock lock(&mu_);
    if (grpc::Status status = Enter("ImportTrials"); !status.ok()) {
      return status;
    }
    for (const v1::Trial& trial : request.trials()) {
      const int64_t index = response->imported() + response->refused();
      const auto batch = trial.parameters().find("batch");
      if (batch != trial.parameters().end() &&
          batch->second.int64_value() > 1000) {
        v1::ImportTrialsResponse::Refusal* refusal = response->add_refusals();
        refusal->set_index(index);
        refusal->set_message("parameters.batch: at most 1000");
        response->set_refused(response->refused() + 1);
      } else {
        imported_.push_back(trial);
        response->set_imported(response->imported() + 1);
      }
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::GetTrial(grpc::ServerContext*,
                                         const v1::GetTrialRequest* request,
                                         v1::Trial* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("GetTrial"); !status.ok()) return status;
  const v1::Trial* trial = FindTrial(request->name());
  if (trial == nullptr) return NotFound(request->name());
  *response = *trial;
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::ListTrials(grpc::ServerContext*,
                                           const v1::ListTrialsRequest* request,
                                           v1::ListTrialsResponse* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("ListTrials"); !status.ok()) return status;
  size_t index = 0;
  if (!request->page_token().empty()) {
    CUBICML_CHECK(absl::SimpleAtoi(request->page_token(), &index));
  }
  // Pages of one, so that paging is always tried.
  const auto skip_others = [&] {
    while (index < trials_.size() &&
           !Matches(request->filter(), trials_[index])) {
      ++index;
    }
  };
  skip_others();
  if (index < trials_.size()) *response->add_trials() = trials_[index++];
  skip_others();
  if (index < trials_.size()) {
    response->set_next_page_token(absl::StrCat(index));
  }
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::ExportTrials(
    grpc::ServerContext*, const v1::ExportTrialsRequest* request,
    grpc::ServerWriter<v1::Trial>* writer) {
  MutexLock lock(&mu_);
  const grpc::Status failure = Enter("ExportTrials");
  for (const v1::Trial& trial : trials_) {
    if (!Matches(request->filter(), trial)) continue;
    writer->Write(trial);
    if (!failure.ok()) return failure;  // in the middle
  }
  return failure;
}

grpc::Status FakeTuningService::ListOptimalTrials(
    grpc::ServerContext*, const v1::ListOptimalTrialsRequest*,
    v1::ListOptimalTrialsResponse* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("ListOptimalTrials"); !status.ok()) {
    return status;
  }
  for (const v1::Trial& trial : trials_) {
    if (trial.state() == v1::Trial::SUCCEEDED) *response->add_trials() = trial;
  }
  return grpc::Status::OK;
}

grpc::Status FakeTuningService::Predict(grpc::ServerContext*,
                                        const v1::PredictRequest* request,
                                        v1::PredictResponse* response) {
  MutexLock lock(&mu_);
  if (grpc::Status status = Enter("Predict"); !status.ok()) return status;
  for (int i = 0; i < request->configurations_size(); ++i) {
    v1::Prediction* prediction = response->add_predictions();
    auto& qps = (*prediction->mutable_metrics())["qps"];
    qps.set_mean(1000);
    qps.set_standard_deviation(20);
    qps.set_lower90(967.1);
    qps.set_upper90(1032.9);
    prediction->set_feasible_probability(0.75);
  }
  response->mutable_surrogate()->set_model_version(3);
  response->mutable_surrogate()->set_kind("linear");
  response->mutable_surrogate()->set_rows(12);
  return grpc::Status::OK;
}

FakeServer::FakeServer(FakeTuningService* service, int port) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                           grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  CUBICML_CHECK(server_ != nullptr);
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeServer::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

v1::Study ExampleStudy() {
  v1::Study study;
  study.set_name("studies/example");
  study.set_display_name("An example");
  v1::Parameter* batch = study.add_parameters();
  batch->set_name("batch");
  batch->mutable_integer()->set_min(1);
  batch->mutable_integer()->set_max(1000);
  *batch->mutable_default_value() = MakeValue(64);
  v1::Parameter* mode = study.add_parameters();
  mode->set_name("mode");
  *mode->mutable_category()->add_values() = MakeValue("plain");
  *mode->mutable_category()->add_values() = MakeValue("fused");
  v1::Parameter* layers = study.add_parameters();
  layers->set_name("layers");
  layers->set_repeat(2);
  *layers->mutable_category()->add_values() = MakeValue("full");
  *layers->mutable_category()->add_values() = MakeValue("none");
  v1::ContextField* rows = study.add_context();
  rows->set_name("rows");
  rows->set_type(v1::INTEGER);
  *rows->mutable_default_value() = MakeValue(1000);
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name("qps");
  objective->set_goal(v1::MAXIMIZE);
  study.add_metrics()->set_name("memory");
  return study;
}

}  // namespace cubicml
