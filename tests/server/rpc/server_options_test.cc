// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/server_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

TEST(ServerOptionsTest, TheDefaultsAreValidAndLocal) {
  EXPECT_THAT(ServerOptions().Validate(), IsOk());
}

TEST(ServerOptionsTest, LoopbackAddressesAreAccepted) {
  for (const char* address :
       {"127.0.0.1:0", "127.0.0.2:7264", "localhost:1", "[::1]:65535"}) {
    ServerOptions options;
    options.listen_address = address;
    options.metrics_address = address;
    EXPECT_THAT(options.Validate(), IsOk()) << address;
  }
}

TEST(ServerOptionsTest, OtherAddressesNeedTheFlagThatNamesTheRisk) {
  for (const char* address :
       {"0.0.0.0:7264", "[::]:7264", "10.0.0.1:1", "tuner.example:7264"}) {
    ServerOptions options;
    options.listen_address = address;
    EXPECT_THAT(options.Validate(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--insecure_listen_anywhere")))
        << address;
    options.insecure_listen_anywhere = true;
    EXPECT_THAT(options.Validate(), IsOk()) << address;
  }
  ServerOptions options;
  options.metrics_address = "0.0.0.0:7265";
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("--metrics_address")));
}

TEST(ServerOptionsTest, WhatIsNoAddressIsRefused) {
  for (const char* address : {"", "127.0.0.1", ":7264", "127.0.0.1:http",
                              "127.0.0.1:65536", "127.0.0.1:-1"}) {
    ServerOptions options;
    options.listen_address = address;
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("--listen_address")))
        << address;
  }
}

TEST(ServerOptionsTest, NoMetricsAddressMeansNoMetricsPort) {
  ServerOptions options;
  options.metrics_address = "";
  EXPECT_THAT(options.Validate(), IsOk());
}

TEST(ServerOptionsTest, BoundsAreChecked) {
  ServerOptions options;
  options.worker_threads = 0;
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
  options = ServerOptions();
  options.max_queued_calls = 0;
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
  options = ServerOptions();
  options.drain_timeout = absl::InfiniteDuration();
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace cubicml
