// SPDX-License-Identifier: Apache-2.0
//
// More calls than the server can carry out, and calls in a hurry.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/e2e_test.h"
#include "tests/support/http_get.h"
#include "tests/support/raw_call.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(E2eTest, OverloadIsRefusedWithARetryDelayAndPasses) {
  StartServer({"--worker_threads=1", "--max_queued_calls=1"});
  constexpr size_t kCalls = 200;
  struct PendingCall {
    grpc::ClientContext context;
    v1::CreateStudyRequest request;
    v1::Study study;
    grpc::Status status;
  };
  std::vector<std::unique_ptr<PendingCall>> calls;
  Mutex mu;
  CondVar ended;
  size_t left = kCalls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<PendingCall>());
    PendingCall* call = calls.back().get();
    SetDeadline(&call->context);
    call->request.set_study_id(absl::StrCat("s", i));
    *call->request.mutable_study() = KnobsStudy();
    stub_->async()->CreateStudy(&call->context, &call->request, &call->study,
                                [&, call](grpc::Status status) {
                                  MutexLock lock(&mu);
                                  call->status = std::move(status);
                                  --left;
                                  ended.NotifyAll();
                                });
  }
  {
    MutexLock lock(&mu);
    while (left > 0) ended.Wait(&mu);
  }
  int accepted = 0;
  int refused = 0;
  for (const auto& call : calls) {
    if (call->status.ok()) {
      ++accepted;
      continue;
    }
    ++refused;
    EXPECT_EQ(call->status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_GT(RetryDelayMs(call->status), 0);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
  v1::ListStudiesRequest list;
  list.set_page_size(1000);
  v1::ListStudiesResponse studies;
  ASSERT_TRUE(Call(&TuningStub::ListStudies, list, &studies).ok());
  EXPECT_EQ(studies.studies_size(), accepted);
  EXPECT_THAT(HttpGet(server_->metrics_port(), "/metrics").body,
              Not(HasSubstr("cubicml_rpc_rejected_total 0")));
}

TEST_F(E2eTest, ASuggestionComesBeforeItsDeadline) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/ads");
  request.set_count(5);
  for (int i = 0; i < 5; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(3));
    v1::SuggestTrialsResponse response;
    const grpc::Status status =
        stub_->SuggestTrials(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(response.trials_size(), 0);
  }
}

TEST_F(E2eTest, ADeadlineThatHasPassedChangesNothing) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/ads");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() -
                       std::chrono::seconds(1));
  v1::SuggestTrialsResponse response;
  EXPECT_EQ(stub_->SuggestTrials(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Export("studies/ads").empty());
}

TEST_F(E2eTest, ClientsThatVanishInTheMiddleHoldNothingUp) {
  StartServer({"--worker_threads=2", "--max_queued_calls=64"});
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  for (int i = 0; i < 50; ++i) {
    const auto stub = server_->NewStub();
    grpc::ClientContext context;
    v1::ImportTrialsResponse response;
    const auto writer = stub->ImportTrials(&context, &response);
    v1::ImportTrialsRequest request;
    request.set_parent("studies/ads");
    *request.add_trials() = MeasuredTrial(1 + i, 1);
    writer->Write(request);
    context.TryCancel();
    writer->Finish();
  }
  v1::SuggestTrialsResponse suggested;
  EXPECT_TRUE(Suggest("studies/ads", "c", 1, &suggested).ok());
  EXPECT_EQ(CheckHealth(server_->NewChannel(), ""), 1);
}

}  // namespace
}  // namespace cubicml
