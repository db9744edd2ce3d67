// SPDX-License-Identifier: Apache-2.0

#include "tests/server/core/service_fixture.h"

#include <google/protobuf/text_format.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"

namespace cubicml {

v1::Study ParseStudy(const std::string& text) {
  v1::Study study;
  CUBICML_CHECK(google::protobuf::TextFormat::ParseFromString(text, &study));
  return study;
}

v1::Study TrainingStudy() {
  return ParseStudy(R"pb(
    display_name: "a language model"
    parameters {
      name: "tp"
      integer { values: 1 values: 2 values: 4 values: 8 }
    }
    parameters {
      name: "dp"
      integer { values: 1 values: 2 values: 4 values: 8 }
      default_value { int64_value: 8 }
    }
    parameters {
      name: "schedule"
      category {
        values { string_value: "1f1b" }
        values { string_value: "gpipe" }
      }
    }
    parameters {
      name: "sharding"
      repeat: 3
      integer { min: 0 max: 2 }
    }
    context { name: "gpus" type: INTEGER }
    constraints { expression: "tp * dp = gpus" }
    objectives {
      metric { name: "qps" unit: "samples/s" }
      goal: MAXIMIZE
    }
    metrics { name: "loss" }
    metrics { name: "memory" unit: "GiB" }
    settings { seed: 7 }
  )pb");
}

v1::Study BoundedStudy() {
  v1::Study study = TrainingStudy();
  v1::MetricConstraint& memory = *study.add_metric_constraints();
  memory.set_metric("memory");
  memory.set_max(76);
  v1::MetricConstraint& loss = *study.add_metric_constraints();
  loss.set_metric("loss");
  loss.set_max(1.1);
  loss.set_relative_to_baseline(true);
  return study;
}

v1::Study PlainStudy() {
  return ParseStudy(R"pb(
    parameters {
      name: "x"
      integer { max: 15 }
    }
    parameters {
      name: "y"
      integer { max: 15 }
    }
    objectives {
      metric { name: "score" }
      goal: MAXIMIZE
    }
    settings { seed: 3 }
  )pb");
}

v1::Value IntegerValue(int64_t value) {
  v1::Value proto;
  proto.set_int64_value(value);
  return proto;
}

ServiceFixture::ServiceFixture(StudyStore* store, FakeClock* clock)
    : store_(store), clock_(clock), trainer_(NewLinearTrainer()) {
  Restart();
}

void ServiceFixture::Restart() {
  service_.reset();
  StudyServiceOptions options;
  options.store = store_;
  options.trainer = trainer_.get();
  options.clock = clock_;
  options.seed = 11;
  absl::StatusOr<std::unique_ptr<StudyService>> service =
      StudyService::Create(options);
  CUBICML_CHECK(service.ok());
  service_ = *std::move(service);
}

v1::Study ServiceFixture::Create(const std::string& study_id, v1::Study study) {
  v1::CreateStudyRequest request;
  request.set_study_id(study_id);
  *request.mutable_study() = std::move(study);
  absl::StatusOr<v1::Study> created = service_->CreateStudy(request);
  EXPECT_TRUE(created.ok()) << created.status();
  return created.ok() ? *std::move(created) : v1::Study();
}

v1::SuggestTrialsRequest ServiceFixture::MakeRequest(
    const std::string& study_id, int count) {
  v1::GetStudyRequest get;
  get.set_name(absl::StrCat("studies/", study_id));
  const absl::StatusOr<v1::Study> study = service_->GetStudy(get);
  v1::SuggestTrialsRequest request;
  request.set_parent(get.name());
  request.set_count(count);
  if (study.ok() && !study->context().empty()) {
    (*request.mutable_context())["gpus"] = IntegerValue(8);
  }
  return request;
}

absl::StatusOr<v1::SuggestTrialsResponse> ServiceFixture::Suggest(
    const v1::SuggestTrialsRequest& request) {
  return service_->SuggestTrials(request,
                                 clock_->Elapsed() + absl::Seconds(60));
}

v1::Trial ServiceFixture::SuggestOne(const std::string& study_id,
                                     const std::string& client_id) {
  v1::SuggestTrialsRequest request = MakeRequest(study_id);
  request.set_client_id(client_id);
  const absl::StatusOr<v1::SuggestTrialsResponse> response = Suggest(request);
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok() || response->trials().empty()) {
    ADD_FAILURE() << "no trial: "
                  << (response.ok() ? response->ShortDebugString() : "");
    return v1::Trial();
  }
  return response->trials(0);
}

absl::StatusOr<v1::Trial> ServiceFixture::Complete(
    const std::string& trial, const std::map<std::string, double>& metrics,
    const std::string& client_id) {
  v1::CompleteTrialRequest request;
  request.set_name(trial);
  request.set_client_id(client_id);
  request.set_state(v1::Trial::SUCCEEDED);
  for (const auto& [name, value] : metrics) {
    (*request.mutable_metrics())[name] = value;
  }
  return service_->CompleteTrial(request);
}

absl::StatusOr<v1::Trial> ServiceFixture::End(const std::string& trial,
                                              v1::Trial::State state,
                                              v1::Trial::Reason reason) {
  v1::CompleteTrialRequest request;
  request.set_name(trial);
  request.set_state(state);
  request.set_reason(reason);
  return service_->CompleteTrial(request);
}

absl::StatusOr<v1::Trial> ServiceFixture::Get(const std::string& trial) {
  v1::GetTrialRequest request;
  request.set_name(trial);
  return service_->GetTrial(request);
}

int ServiceFixture::Train() {
  return service_->TrainPendingStudies(std::stop_token());
}

}  // namespace cubicml
