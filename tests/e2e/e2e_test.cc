// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/e2e_test.h"

#include <chrono>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

v1::Parameter* AddParameter(const std::string& name, v1::Study* study) {
  v1::Parameter* parameter = study->add_parameters();
  parameter->set_name(name);
  return parameter;
}

}  // namespace

v1::Value IntegerValue(int64_t value) {
  v1::Value result;
  result.set_int64_value(value);
  return result;
}

v1::Value NumberValue(double value) {
  v1::Value result;
  result.set_double_value(value);
  return result;
}

v1::Value StringValue(const std::string& value) {
  v1::Value result;
  result.set_string_value(value);
  return result;
}

v1::Study KnobsStudy() {
  v1::Study study;
  study.set_display_name("knobs of every kind");
  v1::IntegerDomain* tp = AddParameter("tp", &study)->mutable_integer();
  for (const int64_t value : {1, 2, 4, 8}) tp->add_values(value);
  v1::IntegerDomain* pp = AddParameter("pp", &study)->mutable_integer();
  pp->set_min(1);
  pp->set_max(2);
  v1::IntegerDomain* batch = AddParameter("batch", &study)->mutable_integer();
  batch->set_min(32);
  batch->set_max(32 * 1000);
  batch->set_step(32);
  v1::NumberDomain* lr = AddParameter("lr", &study)->mutable_number();
  lr->set_min(1e-4);
  lr->set_max(1e-1);
  lr->set_scale(v1::SCALE_LOG);
  v1::Parameter* kernel = AddParameter("kernel", &study);
  for (const char* value : {"fused", "plain"}) {
    *kernel->mutable_category()->add_values() = StringValue(value);
  }
  v1::Parameter* sharding = AddParameter("sharding", &study);
  sharding->set_repeat(3);
  for (const char* value : {"full", "grad", "none"}) {
    *sharding->mutable_category()->add_values() = StringValue(value);
  }
  v1::Parameter* vpp = AddParameter("vpp", &study);
  vpp->mutable_integer()->set_min(1);
  vpp->mutable_integer()->set_max(4);
  vpp->set_active_if("pp > 1");
  v1::ContextField* gpus = study.add_context();
  gpus->set_name("gpus");
  gpus->set_type(v1::INTEGER);
  *gpus->mutable_default_value() = IntegerValue(8);
  study.add_constraints()->set_expression("tp * pp <= gpus");
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name("qps");
  objective->set_goal(v1::MAXIMIZE);
  study.add_metrics()->set_name("memory");
  study.mutable_settings()->set_seed(7);
  return study;
}

v1::Trial MeasuredTrial(int batch_step, double qps) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  auto& parameters = *trial.mutable_parameters();
  parameters["tp"] = IntegerValue(2);
  parameters["pp"] = IntegerValue(1);
  parameters["batch"] = IntegerValue(int64_t{32} * batch_step);
  parameters["lr"] = NumberValue(1e-2);
  parameters["kernel"] = StringValue("plain");
  for (int i = 0; i < 3; ++i) {
    *parameters["sharding"].mutable_list_value()->add_values() =
        StringValue("grad");
  }
  (*trial.mutable_context())["gpus"] = IntegerValue(8);
  (*trial.mutable_metrics())["qps"] = qps;
  return trial;
}

std::string FieldOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  google::rpc::BadRequest bad_request;
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&bad_request) &&
        bad_request.field_violations_size() > 0) {
      return bad_request.field_violations(0).field();
    }
  }
  return "";
}

int64_t RetryDelayMs(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  google::rpc::RetryInfo retry_info;
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&retry_info)) {
      return retry_info.retry_delay().seconds() * 1000 +
             retry_info.retry_delay().nanos() / 1'000'000;
    }
  }
  return 0;
}

void E2eTest::StartServer(std::vector<std::string> flags) {
  stub_.reset();
  server_.reset();
  ServerProcess::Options options;
  options.db_path = dir_.PathOf("cubicml.db");
  options.log_path = dir_.PathOf("log");
  options.flags = std::move(flags);
  auto server = ServerProcess::Start(options);
  ASSERT_THAT(server, IsOk()) << ReadFileOrDie(options.log_path);
  server_ = *std::move(server);
  stub_ = server_->NewStub();
}

void E2eTest::SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(60));
}

grpc::Status E2eTest::CreateStudy(const std::string& id,
                                  const v1::Study& study) {
  v1::CreateStudyRequest request;
  request.set_study_id(id);
  *request.mutable_study() = study;
  v1::Study created;
  return Call(&TuningStub::CreateStudy, request, &created);
}

grpc::Status E2eTest::Suggest(const std::string& study,
                              const std::string& client, int count,
                              v1::SuggestTrialsResponse* response) {
  v1::SuggestTrialsRequest request;
  request.set_parent(study);
  request.set_client_id(client);
  request.set_count(count);
  return Call(&TuningStub::SuggestTrials, request, response);
}

grpc::Status E2eTest::Complete(const v1::Trial& trial, double qps) {
  v1::CompleteTrialRequest request;
  request.set_name(trial.name());
  request.set_client_id(trial.client_id());
  request.set_state(v1::Trial::SUCCEEDED);
  (*request.mutable_metrics())["qps"] = qps;
  v1::Trial completed;
  return Call(&TuningStub::CompleteTrial, request, &completed);
}

v1::Study E2eTest::GetStudy(const std::string& name) {
  v1::GetStudyRequest request;
  request.set_name(name);
  v1::Study study;
  const grpc::Status status = Call(&TuningStub::GetStudy, request, &study);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return study;
}

std::vector<v1::Trial> E2eTest::Export(const std::string& study) {
  v1::ExportTrialsRequest request;
  request.set_parent(study);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto reader = stub_->ExportTrials(&context, request);
  std::vector<v1::Trial> trials;
  v1::Trial trial;
  while (reader->Read(&trial)) trials.push_back(trial);
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return trials;
}

grpc::Status E2eTest::Import(const std::string& study,
                             const std::vector<v1::Trial>& trials,
                             v1::ImportTrialsResponse* response) {
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto writer = stub_->ImportTrials(&context, response);
  constexpr size_t kTrialsPerMessage = 100;
  for (size_t begin = 0; begin < trials.size(); begin += kTrialsPerMessage) {
    v1::ImportTrialsRequest request;
    if (begin == 0) request.set_parent(study);
    const size_t end = std::min(trials.size(), begin + kTrialsPerMessage);
    for (size_t i = begin; i < end; ++i) *request.add_trials() = trials[i];
    if (!writer->Write(request)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

}  // namespace cubicml
