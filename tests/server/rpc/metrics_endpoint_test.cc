// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/metrics_endpoint.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/http_get.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

MetricsEndpoint::Content ReadyContent() {
  MetricsEndpoint::Content content;
  content.metrics = [] { return std::string("cubicml_x 1\n"); };
  content.readiness = [] { return absl::OkStatus(); };
  return content;
}

TEST(MetricsEndpointTest, ServesMetricsHealthAndReadiness) {
  const auto endpoint = MetricsEndpoint::Create("127.0.0.1:0", ReadyContent());
  ASSERT_THAT(endpoint, IsOk());
  const int port = (*endpoint)->port();
  ASSERT_GT(port, 0);
  const HttpResponse metrics = HttpGet(port, "/metrics");
  EXPECT_EQ(metrics.code, 200);
  EXPECT_EQ(metrics.body, "cubicml_x 1\n");
  EXPECT_THAT(metrics.head, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_EQ(HttpGet(port, "/healthz").code, 200);
  EXPECT_EQ(HttpGet(port, "/readyz").code, 200);
  EXPECT_EQ(HttpGet(port, "/").code, 404);
  EXPECT_EQ(HttpGet(port, "/etc/passwd").code, 404);
}

TEST(MetricsEndpointTest, SaysWhyItIsNotReady) {
  MetricsEndpoint::Content content = ReadyContent();
  content.readiness = [] { return absl::UnavailableError("draining"); };
  const auto endpoint =
      MetricsEndpoint::Create("127.0.0.1:0", std::move(content));
  ASSERT_THAT(endpoint, IsOk());
  const HttpResponse response = HttpGet((*endpoint)->port(), "/readyz");
  EXPECT_EQ(response.code, 503);
  EXPECT_EQ(response.body, "draining\n");
  EXPECT_EQ(HttpGet((*endpoint)->port(), "/healthz").code, 200);
}

TEST(MetricsEndpointTest, ATakenPortIsAnErrorThatNamesIt) {
  const auto first = MetricsEndpoint::Create("127.0.0.1:0", ReadyContent());
  ASSERT_THAT(first, IsOk());
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(MetricsEndpoint::Create(address, ReadyContent()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address)));
}

TEST(MetricsEndpointTest, LargeBodiesAndManyScrapersAreServed) {
  MetricsEndpoint::Content content = ReadyContent();
  const std::string large(3 << 20, 'x');
  content.metrics = [&large] { return large; };
  const auto endpoint =
      MetricsEndpoint::Create("127.0.0.1:0", std::move(content));
  ASSERT_THAT(endpoint, IsOk());
  std::atomic<int> whole{0};
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 8; ++i) {
    scrapers.emplace_back([&] {
      if (HttpGet((*endpoint)->port(), "/metrics").body == large) ++whole;
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
  EXPECT_EQ(whole, 8);
}

}  // namespace
}  // namespace cubicml
