// SPDX-License-Identifier: Apache-2.0
//
// The client against a server in this process, over loopback.

#include "cubicml/client/tuning_client.h"

#include <optional>
#include <thread>

#include "cubicml/client/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const grpc::Status kAway(grpc::StatusCode::UNAVAILABLE, "draining");

class TuningClientTest : public ::testing::Test {
 protected:
  TuningClientTest() {
    v1::CreateStudyRequest create;
    create.set_study_id("example");
    *create.mutable_study() = ExampleStudy();
    EXPECT_THAT(client_->CreateStudy(create), IsOk());
  }

  std::unique_ptr<TuningClient> MakeClient(TuningClientOptions options) {
    options.server = server_->address();
    options.retry.initial_backoff = absl::Milliseconds(1);
    options.retry.max_backoff = absl::Milliseconds(20);
    return std::move(TuningClient::Create(options)).value();
  }
  absl::StatusOr<TrialHandle> Start() {
    return client_->StartTrial({.study = "example"});
  }

  FakeTuningService service_;
  std::optional<FakeServer> server_{&service_};
  std::unique_ptr<TuningClient> client_ = MakeClient({});
};

TEST_F(TuningClientTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THAT(TuningClient::Create({.server = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TuningClient::Create({.timeout = absl::ZeroDuration()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(TuningClient::Create({.retry = {.max_attempts = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TuningClientTest, ErrorsNameTheCallTheServerAndTheField) {
  service_.FailNext("CreateStudy",
                    {FieldStatus("parameters[0].integer.max", "too small")});
  const absl::StatusOr<v1::Study> study = client_->CreateStudy({});
  EXPECT_THAT(study, StatusIs(absl::StatusCode::kInvalidArgument,
                              AllOf(HasSubstr("CreateStudy"),
                                    HasSubstr(server_->address()),
                                    HasSubstr("too small"))));
  EXPECT_EQ(FieldOf(study.status()), "parameters[0].integer.max");
}

TEST_F(TuningClientTest, AServerThatIsNotThereIsNamed) {
  const std::string address = server_->address();
  server_.reset();
  const absl::StatusOr<v1::Study> study = client_->GetStudy({});
  EXPECT_THAT(study,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
  EXPECT_TRUE(IsServerAway(study.status()));
}

TEST_F(TuningClientTest, AReadIsRepeated) {
  service_.FailNext("GetStudy", {kAway, kAway});
  v1::GetStudyRequest request;
  request.set_name("studies/example");
  EXPECT_THAT(client_->GetStudy(request), IsOk());
  EXPECT_EQ(service_.calls("GetStudy"), 3);
}

TEST_F(TuningClientTest, OverloadIsWaitedOut) {
  service_.FailNext("GetStudy", {RetryStatus(grpc::RESOURCE_EXHAUSTED,
                                             absl::Milliseconds(5))});
  v1::GetStudyRequest request;
  request.set_name("studies/example");
  EXPECT_THAT(client_->GetStudy(request), IsOk());
  EXPECT_EQ(service_.calls("GetStudy"), 2);
}

TEST_F(TuningClientTest, ACompletionWhoseAnswerIsLostIsCarriedOutOnce) {
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  service_.LoseNextAnswer("CompleteTrial");
  CUBICML_EXPECT_OK(trial.Complete({{"qps", 100}}));
  EXPECT_EQ(service_.calls("CompleteTrial"), 2);
  EXPECT_EQ(service_.carried_out(), 1);
  EXPECT_THAT(service_.completions(), SizeIs(1));
}

TEST_F(TuningClientTest, TheClientOutlivesARestartOfTheServer) {
  std::unique_ptr<TuningClient> patient = MakeClient({.wait_for_ready = true});
  v1::GetStudyRequest request;
  request.set_name("studies/example");
  CUBICML_EXPECT_OK(patient->GetStudy(request));
  const int port = server_->port();
  server_.reset();
  server_.emplace(&service_, port);
  CUBICML_EXPECT_OK(patient->GetStudy(request));
}

TEST_F(TuningClientTest, AnExhaustedStudyIsOutOfRange) {
  service_.SetMaxTrials(0);
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kOutOfRange,
                                HasSubstr("everything has been tried")));
}

TEST_F(TuningClientTest, AWrongStudyNameIsToldWithoutACall) {
  EXPECT_THAT(client_->StartTrial({.study = "Not a study"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(service_.calls("SuggestTrials"), 0);
}

TEST_F(TuningClientTest, WhatIsAskedForReachesTheService) {
  StartTrialOptions options;
  options.study = "example";
  options.client_id = "job-1";
  options.context = MakeValues({{"rows", 5}});
  options.fixed_parameters = MakeValues({{"mode", "fused"}});
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, client_->StartTrial(options));
  EXPECT_THAT(trial.Get<std::string>("mode"), IsOkAndHolds("fused"));
  EXPECT_THAT(trial.Get<int64_t>("batch"), IsOkAndHolds(64));
  const v1::SuggestTrialsRequest request = service_.suggestions()[0];
  EXPECT_EQ(request.client_id(), "job-1");
  EXPECT_EQ(request.context().at("rows").int64_value(), 5);
  EXPECT_FALSE(request.request_id().empty());
}

TEST_F(TuningClientTest, ImportsAreSentInMessagesOfABoundedSize) {
  std::vector<v1::Trial> trials(2500);
  for (v1::Trial& trial : trials) {
    (*trial.mutable_parameters())["batch"] = MakeValue(8);
  }
  (*trials[7].mutable_parameters())["batch"] = MakeValue(2000);
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::ImportTrialsResponse response,
      client_->ImportTrials("studies/example", trials));
  EXPECT_EQ(response.imported(), 2499);
  ASSERT_THAT(response.refusals(), SizeIs(1));
  EXPECT_EQ(response.refusals(0).index(), 7);
  EXPECT_EQ(service_.calls("ImportTrials"), 3);
}

TEST_F(TuningClientTest, AnExportGoesOnAfterALostConnection) {
  for (int i = 0; i < 4; ++i) {
    CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
    trial.Release();
  }
  service_.FailNext("ExportTrials", {kAway, kAway, kAway});
  v1::ExportTrialsRequest request;
  request.set_parent("studies/example");
  std::vector<std::string> names;
  CUBICML_EXPECT_OK(client_->ExportTrials(request, [&](const v1::Trial& trial) {
    names.push_back(trial.name());
    return absl::OkStatus();
  }));
  EXPECT_THAT(names, ::testing::ElementsAre("studies/example/trials/1",
                                            "studies/example/trials/2",
                                            "studies/example/trials/3",
                                            "studies/example/trials/4"));
}

TEST_F(TuningClientTest, AnExportEndsWithTheErrorOfItsReader) {
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  v1::ExportTrialsRequest request;
  request.set_parent("studies/example");
  EXPECT_THAT(client_->ExportTrials(request,
                                    [](const v1::Trial&) {
                                      return absl::DataLossError("disk full");
                                    }),
              StatusIs(absl::StatusCode::kDataLoss, "disk full"));
}

TEST_F(TuningClientTest, ADroppedTrialIsAbandoned) {
  { CUBICML_ASSERT_OK_AND_ASSIGN(const TrialHandle trial, Start()); }
  ASSERT_THAT(service_.completions(), SizeIs(1));
  EXPECT_EQ(service_.completions()[0].state(), v1::Trial::ABANDONED);
}

TEST_F(TuningClientTest, ACompletedTrialIsNotAbandoned) {
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
    CUBICML_EXPECT_OK(trial.Complete({{"qps", 100}}));
    EXPECT_THAT(trial.Fail(v1::Trial::CRASH, "late"),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  ASSERT_THAT(service_.completions(), SizeIs(1));
  EXPECT_EQ(service_.completions()[0].state(), v1::Trial::SUCCEEDED);
  EXPECT_EQ(service_.completions()[0].metrics().at("qps"), 100);
}

TEST_F(TuningClientTest, AFailureCarriesItsReason) {
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  CUBICML_EXPECT_OK(trial.Fail(v1::Trial::OUT_OF_MEMORY, "CUDA"));
  EXPECT_EQ(service_.completions()[0].state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(service_.completions()[0].reason(), v1::Trial::OUT_OF_MEMORY);
  EXPECT_EQ(service_.completions()[0].reason_detail(), "CUDA");
}

TEST_F(TuningClientTest, AMovedHandleStaysOne) {
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  TrialHandle other = std::move(trial);
  CUBICML_EXPECT_OK(other.Complete({{"qps", 1}}));
  EXPECT_THAT(service_.completions(), SizeIs(1));
}

TEST_F(TuningClientTest, AHandleOutlivesItsClient) {
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  client_.reset();
  CUBICML_EXPECT_OK(trial.Complete({{"qps", 1}}));
}

TEST_F(TuningClientTest, DroppingATrialWithoutAServerTakesABoundedTime) {
  std::unique_ptr<TuningClient> client = MakeClient(
      {.wait_for_ready = true, .abandon_timeout = absl::Milliseconds(50)});
  std::optional<TrialHandle> trial;
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle started,
                                 client->StartTrial({.study = "example"}));
    trial.emplace(std::move(started));
  }
  server_.reset();
  trial.reset();  // the test's own time limit is the check
  EXPECT_TRUE(service_.completions().empty());
}

TEST_F(TuningClientTest, HeartbeatsKeepTheLeaseAndCarryMeasurements) {
  service_.SetLease(absl::Milliseconds(60));
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  trial.Report(3, {{"qps", 12}});
  service_.AwaitCalls("Heartbeat", 3);
  const std::vector<v1::HeartbeatRequest> heartbeats = service_.heartbeats();
  EXPECT_EQ(heartbeats[0].name(), trial.name());
  EXPECT_EQ(heartbeats[0].intermediate().step(), 3);
  EXPECT_FALSE(trial.should_stop());
}

TEST_F(TuningClientTest, AWishToStopArrivesWithAHeartbeat) {
  service_.SetLease(absl::Milliseconds(60));
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  service_.RequestStop();
  while (!trial.should_stop()) std::this_thread::yield();
}

TEST_F(TuningClientTest, ACancelledTrialIsToStop) {
  service_.SetLease(absl::Milliseconds(60));
  CUBICML_ASSERT_OK_AND_ASSIGN(TrialHandle trial, Start());
  service_.CancelAll();
  while (!trial.should_stop()) std::this_thread::yield();
}

}  // namespace
}  // namespace cubicml
