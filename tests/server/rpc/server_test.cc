// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/server.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"
#include "server/rpc/metrics.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/http_get.h"
#include "tests/support/raw_call.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

constexpr char kService[] = "cubicml.v1.TuningService";
constexpr int kServing = 1;
constexpr int kNotServing = 2;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    options_.listen_address = "127.0.0.1:0";
    options_.metrics_address = "127.0.0.1:0";
    options_.drain_timeout = absl::Seconds(2);
    // The other tests fill the machine.
    options_.training_niceness = 0;
  }

  absl::StatusOr<std::unique_ptr<Server>> StartServer() {
    ServerParts parts;
    parts.clock = std::make_unique<SystemClock>();
    parts.metrics = std::make_unique<ServerMetrics>();
    auto store = std::make_unique<FakeStudyStore>();
    store_ = store.get();
    parts.store = std::move(store);
    parts.trainer = NewLinearTrainer();
    return Server::Start(options_, std::move(parts));
  }

  static std::shared_ptr<grpc::Channel> Connect(const Server& server) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server.port()),
                               grpc::InsecureChannelCredentials());
  }

  ServerOptions options_;
  FakeStudyStore* store_ = nullptr;
};

TEST_F(ServerTest, ServesWhenStartReturns) {
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  const auto channel = Connect(**server);
  EXPECT_EQ(CheckHealth(channel, ""), kServing);
  EXPECT_EQ(CheckHealth(channel, kService), kServing);
  EXPECT_EQ(CheckHealth(channel, "no.such.Service"), 0);
  EXPECT_EQ(HttpGet((*server)->metrics_port(), "/readyz").code, 200);
  const auto stub = v1::TuningService::NewStub(channel);
  grpc::ClientContext context;
  v1::ListStudiesResponse response;
  EXPECT_TRUE(stub->ListStudies(&context, {}, &response).ok());
  EXPECT_THAT(HttpGet((*server)->metrics_port(), "/metrics").body,
              HasSubstr("method=\"ListStudies\""));
}

TEST_F(ServerTest, ReflectionListsTheServices) {
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  std::vector<std::string> responses;
  const grpc::Status status = StreamRaw(
      Connect(**server),
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
      {std::string("\x3A\x00", 2)},  // list_services: ""
      1, &responses);
  EXPECT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_THAT(responses[0], HasSubstr(kService));
  EXPECT_THAT(responses[0], HasSubstr("grpc.health.v1.Health"));
}

TEST_F(ServerTest, AStoreThatRefusesWritesTurnsHealthToNotServing) {
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  const auto channel = Connect(**server);
  store_->SetWriteError(absl::UnavailableError("the disk is broken"));
  EXPECT_TRUE(WaitUntil(absl::Seconds(30), [&] {
    return CheckHealth(channel, kService) == kNotServing;
  }));
  EXPECT_EQ(CheckHealth(channel, ""), kNotServing);
  const HttpResponse ready = HttpGet((*server)->metrics_port(), "/readyz");
  EXPECT_EQ(ready.code, 503);
  EXPECT_THAT(ready.body, HasSubstr("the disk is broken"));
  EXPECT_THAT(HttpGet((*server)->metrics_port(), "/metrics").body,
              HasSubstr("cubicml_serving 0"));
}

TEST_F(ServerTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto first = StartServer();
  ASSERT_THAT(first, IsOk());
  options_.listen_address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(StartServer(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr(options_.listen_address)));
}

TEST_F(ServerTest, ATakenMetricsPortIsAnErrorThatNamesIt) {
  const auto first = StartServer();
  ASSERT_THAT(first, IsOk());
  options_.metrics_address =
      absl::StrCat("127.0.0.1:", (*first)->metrics_port());
  EXPECT_THAT(StartServer(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr(options_.metrics_address)));
}

TEST_F(ServerTest, WithoutAMetricsAddressThereIsNoSuchPort) {
  options_.metrics_address = "";
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ((*server)->metrics_port(), 0);
}

TEST_F(ServerTest, ThePortFileHoldsThePort) {
  const TempDir dir;
  options_.port_file = dir.PathOf("port");
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(ReadFileOrDie(options_.port_file),
            absl::StrCat((*server)->port(), "\n"));
  options_.port_file = dir.PathOf("no/such/folder/port");
  EXPECT_THAT(StartServer(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ServerTest, DrainingIsBoundedAlthoughAClientStaysConnected) {
  const auto server = StartServer();
  ASSERT_THAT(server, IsOk());
  const auto channel = Connect(**server);
  ASSERT_EQ(CheckHealth(channel, ""), kServing);
  // A stream that its client never ends.
  const auto stub = v1::TuningService::NewStub(channel);
  grpc::ClientContext context;
  v1::ImportTrialsResponse response;
  const auto writer = stub->ImportTrials(&context, &response);
  v1::ImportTrialsRequest request;
  request.set_parent("studies/none");
  writer->Write(request);
  const SystemClock clock;
  const absl::Duration start = clock.Elapsed();
  (*server)->Drain();
  EXPECT_LT(clock.Elapsed() - start, absl::Seconds(20));
  EXPECT_FALSE(writer->Finish().ok());
  (*server)->Drain();  // again does nothing
}

}  // namespace
}  // namespace cubicml
