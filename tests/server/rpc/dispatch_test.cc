// SPDX-License-Identifier: Apache-2.0
//
// The threading policy, on a real gRPC server whose workers are the test.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"
#include "server/core/study_service.h"
#include "server/rpc/metrics.h"
#include "server/rpc/tuning_rpc_service.h"
#include "server/rpc/wire_message.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/raw_call.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

// Keeps what it is given until the test, on its own thread, runs it; or runs
// it on a thread of its own once it is let go.
class HeldExecutor final : public Executor {
 public:
  ~HeldExecutor() override {
    if (runner_.joinable()) {
      {
        MutexLock lock(&mu_);
        closed_ = true;
      }
      changed_.NotifyAll();
      runner_.join();
    }
  }

  bool TrySchedule(std::function<void()> work) override {
    MutexLock lock(&mu_);
    if (full_) {
      ++refused_;
      changed_.NotifyAll();
      return false;
    }
    queue_.push_back(std::move(work));
    most_waiting_ = std::max(most_waiting_, queue_.size());
    changed_.NotifyAll();
    return true;
  }

  void SetFull(bool full) {
    MutexLock lock(&mu_);
    full_ = full;
  }
  void WaitForWork() {
    MutexLock lock(&mu_);
    while (queue_.empty()) changed_.Wait(&mu_);
  }
  void WaitForRefusals(int count) {
    MutexLock lock(&mu_);
    while (refused_ < count) changed_.Wait(&mu_);
  }
  void RunOne() {
    std::function<void()> work;
    {
      MutexLock lock(&mu_);
      while (queue_.empty()) changed_.Wait(&mu_);
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
  // From now on everything runs as it comes.
  void LetGo() {
    runner_ = std::thread([this]() noexcept {
      while (true) {
        std::function<void()> work;
        {
          MutexLock lock(&mu_);
          while (queue_.empty() && !closed_) changed_.Wait(&mu_);
          if (queue_.empty()) return;
          work = std::move(queue_.front());
          queue_.pop_front();
        }
        work();
      }
    });
  }
  size_t most_waiting() const {
    MutexLock lock(&mu_);
    return most_waiting_;
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  size_t most_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int refused_ ABSL_GUARDED_BY(mu_) = 0;
  bool full_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread runner_;
};

v1::Study SmallStudy() {
  v1::Study study;
  v1::Parameter* parameter = study.add_parameters();
  parameter->set_name("batch");
  parameter->mutable_integer()->set_min(1);
  parameter->mutable_integer()->set_max(10000);
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name("qps");
  objective->set_goal(v1::MAXIMIZE);
  return study;
}

v1::Trial Measured(int batch) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  (*trial.mutable_parameters())["batch"].set_int64_value(batch);
  (*trial.mutable_metrics())["qps"] = batch * 2.0;
  return trial;
}

class DispatchTest : public ::testing::Test {
 protected:
  DispatchTest() : trainer_(NewLinearTrainer()) {
    RouteProtobufLog();
    StudyServiceOptions options;
    options.store = &store_;
    options.trainer = trainer_.get();
    options.clock = &clock_;
    service_ = *StudyService::Create(options);
    rpc_service_ = CreateTuningRpcService(
        {service_.get(), &executor_, &clock_, &metrics_});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(rpc_service_.get());
    builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxRequestBytes));
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::TuningService::NewStub(channel_);
  }
  ~DispatchTest() override {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::seconds(5));
  }

  void CreateStudy() {
    v1::CreateStudyRequest request;
    request.set_study_id("ads");
    *request.mutable_study() = SmallStudy();
    ASSERT_THAT(service_->CreateStudy(request), IsOk());
  }
  void ImportDirectly(int trials) {
    std::vector<v1::Trial> batch;
    for (int i = 1; i <= trials; ++i) batch.push_back(Measured(i));
    v1::ImportTrialsResponse response;
    ASSERT_THAT(service_->ImportTrials("studies/ads", batch, 0, &response),
                IsOk());
    ASSERT_EQ(response.imported(), trials);
  }
  int64_t CountTrials() {
    v1::GetStudyRequest request;
    request.set_name("studies/ads");
    return service_->GetStudy(request)->progress().trials();
  }

  // Sends bytes as the request of a unary call.
  grpc::Status CallWithBytes(const std::string& method,
                             const std::string& text) {
    return CallRaw(channel_, "/cubicml.v1.TuningService/" + method, text,
                   nullptr);
  }

  FakeClock clock_{SystemClock().Now()};
  FakeStudyStore store_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<StudyService> service_;
  ServerMetrics metrics_;
  HeldExecutor executor_;
  std::unique_ptr<grpc::Service> rpc_service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TuningService::Stub> stub_;
};

TEST_F(DispatchTest, AFullQueueIsAnsweredAtOnceWithARetryDelay) {
  executor_.SetFull(true);
  grpc::ClientContext context;
  v1::Study study;
  const grpc::Status status = stub_->GetStudy(&context, {}, &study);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  google::rpc::RetryInfo retry_info;
  ASSERT_TRUE(details.details(0).UnpackTo(&retry_info));
  EXPECT_GT(retry_info.retry_delay().nanos(), 0);
  EXPECT_THAT(metrics_.Render(), HasSubstr("cubicml_rpc_rejected_total 1"));
}

TEST_F(DispatchTest, ACallThatExpiredWhileItWaitedIsNotCarriedOut) {
  v1::CreateStudyRequest request;
  request.set_study_id("ads");
  *request.mutable_study() = SmallStudy();
  // A call that expires before there is a connection never gets to the server.
  ASSERT_TRUE(channel_->WaitForConnected(std::chrono::system_clock::now() +
                                         std::chrono::seconds(60)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  v1::Study study;
  EXPECT_EQ(stub_->CreateStudy(&context, request, &study).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The server's deadline is a little later than the client's.
  clock_.Advance(absl::Seconds(1));
  executor_.RunOne();
  EXPECT_EQ(service_->ListStudies({})->studies_size(), 0);
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("cubicml_rpc_requests_total{code=\"DEADLINE_EXCEEDED\","
                        "method=\"CreateStudy\"} 1"));
}

TEST_F(DispatchTest, BytesThatAreNoRequestAreInvalidOnEveryUnaryCall) {
  executor_.LetGo();
  for (const char* method :
       {"CreateStudy", "GetStudy", "ListStudies", "UpdateStudy", "DeleteStudy",
        "SuggestTrials", "Heartbeat", "CompleteTrial", "CancelTrial",
        "GetTrial", "ListTrials", "ListOptimalTrials", "Predict"}) {
    EXPECT_EQ(CallWithBytes(method, "\xFF\xFF\xFF").error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << method;
  }
  // Field 1 of each of these is a string.
  const grpc::Status status = CallWithBytes("GetStudy", "\x0A\x01\xFF");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "name: must be valid UTF-8");
}

TEST_F(DispatchTest, AnUnknownCallIsUnimplemented) {
  EXPECT_EQ(CallWithBytes("NoSuchCall", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(DispatchTest, AnOversizedRequestIsRefusedAndTheConnectionGoesOn) {
  executor_.LetGo();
  CreateStudy();
  v1::CreateStudyRequest request;
  request.set_study_id("big");
  request.mutable_study()->set_display_name(std::string(10 << 20, 'x'));
  grpc::ClientContext context;
  v1::Study study;
  EXPECT_EQ(stub_->CreateStudy(&context, request, &study).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext next;
  v1::GetStudyRequest get;
  get.set_name("studies/ads");
  EXPECT_TRUE(stub_->GetStudy(&next, get, &study).ok());
}

TEST_F(DispatchTest, AnImportReadsOneMessageAtATime) {
  CreateStudy();
  grpc::ClientContext context;
  v1::ImportTrialsResponse response;
  const auto writer = stub_->ImportTrials(&context, &response);
  for (int i = 1; i <= 5; ++i) {
    v1::ImportTrialsRequest request;
    if (i == 1) request.set_parent("studies/ads");
    *request.add_trials() = Measured(i);
    *request.add_trials() = Measured(100 + i);
    ASSERT_TRUE(writer->Write(request));
  }
  writer->WritesDone();
  for (int step = 0; step < 6; ++step) {
    executor_.WaitForWork();
    EXPECT_EQ(CountTrials(), 2 * step);
    executor_.RunOne();
  }
  const grpc::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.imported(), 10);
  EXPECT_EQ(executor_.most_waiting(), 1u);
}

TEST_F(DispatchTest, OverloadSlowsAnImportThatHasBegunAndRefusesANewOne) {
  CreateStudy();
  grpc::ClientContext context;
  v1::ImportTrialsResponse response;
  const auto writer = stub_->ImportTrials(&context, &response);
  v1::ImportTrialsRequest request;
  request.set_parent("studies/ads");
  *request.add_trials() = Measured(1);
  ASSERT_TRUE(writer->Write(request));
  executor_.WaitForWork();
  executor_.SetFull(true);
  executor_.RunOne();
  *request.mutable_trials(0) = Measured(2);
  ASSERT_TRUE(writer->Write(request));
  writer->WritesDone();
  executor_.WaitForRefusals(2);  // it asks again and again
  grpc::ClientContext other_context;
  v1::ImportTrialsResponse other_response;
  const auto other = stub_->ImportTrials(&other_context, &other_response);
  other->WritesDone();
  EXPECT_EQ(other->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  executor_.SetFull(false);
  executor_.LetGo();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(response.imported(), 2);
}

TEST_F(DispatchTest, AnImportThatTurnsToGarbageIsAnErrorNotAnEnd) {
  executor_.LetGo();
  CreateStudy();
  const std::unique_ptr<grpc::ClientContext> context =
      std::make_unique<grpc::ClientContext>();
  v1::ImportTrialsResponse response;
  const auto writer = stub_->ImportTrials(context.get(), &response);
  v1::ImportTrialsRequest request;
  request.set_parent("studies/ads");
  *request.add_trials() = Measured(1);
  ASSERT_TRUE(writer->Write(request));
  // A client library that does not check its strings.
  v1::ImportTrialsRequest broken;
  (*broken.add_trials()->mutable_labels())["k"] = "\xFF";
  writer->Write(broken);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("after 1 trials were imported"));
  EXPECT_THAT(status.error_message(), HasSubstr("trials[0].labels[0].value"));
}

TEST_F(DispatchTest, AnImportNamesItsStudyOnceAndFirst) {
  executor_.LetGo();
  CreateStudy();
  for (const bool empty : {true, false}) {
    grpc::ClientContext context;
    v1::ImportTrialsResponse response;
    const auto writer = stub_->ImportTrials(&context, &response);
    v1::ImportTrialsRequest request;
    *request.add_trials() = Measured(1);
    if (!empty) writer->Write(request);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("parent"));
  }
  EXPECT_EQ(CountTrials(), 0);
}

TEST_F(DispatchTest, AnExportGivesEveryTrialInOrderPageByPage) {
  executor_.LetGo();
  CreateStudy();
  ImportDirectly(600);
  grpc::ClientContext context;
  v1::ExportTrialsRequest request;
  request.set_parent("studies/ads");
  const auto reader = stub_->ExportTrials(&context, request);
  v1::Trial trial;
  int count = 0;
  while (reader->Read(&trial)) {
    ++count;
    ASSERT_EQ(trial.name(), absl::StrCat("studies/ads/trials/", count));
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(count, 600);
  EXPECT_EQ(executor_.most_waiting(), 1u);
}

TEST_F(DispatchTest, AnExportKeepsItsFilterOverPages) {
  executor_.LetGo();
  CreateStudy();
  ImportDirectly(600);
  grpc::ClientContext context;
  v1::ExportTrialsRequest request;
  request.set_parent("studies/ads");
  request.set_filter("objective > 600");  // the trials above 300
  const auto reader = stub_->ExportTrials(&context, request);
  v1::Trial trial;
  int count = 0;
  while (reader->Read(&trial)) ++count;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(count, 300);
}

TEST_F(DispatchTest, AnExportOfNothingEndsAndOfNoStudyFails) {
  executor_.LetGo();
  CreateStudy();
  const std::pair<const char*, grpc::StatusCode> cases[] = {
      {"studies/ads", grpc::StatusCode::OK},
      {"studies/none", grpc::StatusCode::NOT_FOUND},
      {"ads", grpc::StatusCode::INVALID_ARGUMENT}};
  for (const auto& [parent, code] : cases) {
    grpc::ClientContext context;
    v1::ExportTrialsRequest request;
    request.set_parent(parent);
    const auto reader = stub_->ExportTrials(&context, request);
    v1::Trial trial;
    EXPECT_FALSE(reader->Read(&trial));
    EXPECT_EQ(reader->Finish().error_code(), code) << parent;
  }
}

TEST_F(DispatchTest, AnExportWhoseReaderLeavesHoldsNothingUp) {
  executor_.LetGo();
  CreateStudy();
  ImportDirectly(2000);
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    v1::ExportTrialsRequest request;
    request.set_parent("studies/ads");
    const auto reader = stub_->ExportTrials(&context, request);
    v1::Trial trial;
    EXPECT_TRUE(reader->Read(&trial));
    context.TryCancel();
  }
  grpc::ClientContext context;
  v1::GetStudyRequest get;
  get.set_name("studies/ads");
  v1::Study study;
  EXPECT_TRUE(stub_->GetStudy(&context, get, &study).ok());
}

TEST_F(DispatchTest, AReadEndsAtTheDeadlineOfItsCall) {
  CreateStudy();
  ImportDirectly(3);
  // While trials are read, time passes.
  store_.SetScanHook([this] { clock_.Advance(absl::Hours(1)); });
  executor_.LetGo();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(60));
  v1::ExportTrialsRequest request;
  request.set_parent("studies/ads");
  const auto reader = stub_->ExportTrials(&context, request);
  v1::Trial trial;
  EXPECT_FALSE(reader->Read(&trial));
  EXPECT_EQ(reader->Finish().error_code(), grpc::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace cubicml
