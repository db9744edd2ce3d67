// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/result_spool.h"

#include <filesystem>

#include "client/cli/run/study_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

v1::CompleteTrialRequest Result(const std::string& request_id) {
  v1::CompleteTrialRequest request;
  request.set_name("studies/example/trials/7");
  request.set_state(v1::Trial::SUCCEEDED);
  (*request.mutable_metrics())["qps"] = 0.1;
  request.set_request_id(request_id);
  return request;
}

size_t FilesIn(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(ResultSpoolTest, AResultIsDeliveredAsItWasAndOnce) {
  const TempDir dir;
  const ResultSpool spool(dir.PathOf("cache"), "localhost:7264");
  CUBICML_ASSERT_OK(spool.Add(Result("one")));
  std::vector<v1::CompleteTrialRequest> sent;
  const auto send = [&](const v1::CompleteTrialRequest& request) {
    sent.push_back(request);
    return absl::OkStatus();
  };
  EXPECT_EQ(spool.Deliver(send).delivered, 1);
  EXPECT_EQ(spool.Deliver(send).delivered, 0);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_THAT(sent[0], EqualsProto(Result("one")));
  EXPECT_EQ(FilesIn(spool.folder()), 0u);
}

TEST(ResultSpoolTest, AServerThatIsStillAwayLeavesThemAll) {
  const TempDir dir;
  const ResultSpool spool(dir.path(), "localhost:7264");
  CUBICML_ASSERT_OK(spool.Add(Result("one")));
  CUBICML_ASSERT_OK(spool.Add(Result("two")));
  int calls = 0;
  const ResultSpool::Report report =
      spool.Deliver([&](const v1::CompleteTrialRequest&) {
        ++calls;
        return absl::UnavailableError("away");
      });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(report.left, 2);
  EXPECT_EQ(FilesIn(spool.folder()), 2u);
}

TEST(ResultSpoolTest, WhatTheServiceWillNeverTakeIsSetAside) {
  const TempDir dir;
  const ResultSpool spool(dir.path(), "localhost:7264");
  CUBICML_ASSERT_OK(spool.Add(Result("one")));
  WriteFileOrDie(spool.folder() + "/broken.json", "{");
  const auto refuse = [](const v1::CompleteTrialRequest&) {
    return absl::NotFoundError("no such trial");
  };
  EXPECT_EQ(spool.Deliver(refuse).refused, 2);
  EXPECT_EQ(spool.Deliver(refuse).refused, 0);
  EXPECT_EQ(FilesIn(spool.folder()), 2u);
}

TEST(ResultSpoolTest, ServersAreKeptApart) {
  const TempDir dir;
  CUBICML_ASSERT_OK(ResultSpool(dir.path(), "a:1").Add(Result("one")));
  EXPECT_EQ(ResultSpool(dir.path(), "b:1")
                .Deliver([](const v1::CompleteTrialRequest&) {
                  return absl::OkStatus();
                })
                .delivered,
            0);
}

TEST(ResultSpoolTest, AFolderThatCannotBeMadeIsAnError) {
  const TempDir dir;
  WriteFileOrDie(dir.PathOf("file"), "");
  EXPECT_FALSE(ResultSpool(dir.PathOf("file"), "a:1").Add(Result("x")).ok());
}

TEST(StudyCacheTest, AStudyIsRememberedWhole) {
  const TempDir dir;
  const StudyCache cache(dir.path(), "localhost:7264");
  EXPECT_EQ(cache.LoadStudy("studies/example"), std::nullopt);
  CUBICML_ASSERT_OK(cache.SaveStudy(ExampleStudy()));
  ASSERT_TRUE(cache.LoadStudy("studies/example").has_value());
  EXPECT_THAT(*cache.LoadStudy("studies/example"), EqualsProto(ExampleStudy()));
}

TEST(StudyCacheTest, ABaselineCountsForItsContext) {
  const TempDir dir;
  const StudyCache cache(dir.path(), "localhost:7264");
  v1::Trial trial;
  trial.set_name("studies/example/trials/1");
  (*trial.mutable_parameters())["batch"] = MakeValue(64);
  (*trial.mutable_context())["rows"] = MakeValue(5);
  CUBICML_ASSERT_OK(cache.SaveBaseline(trial));
  EXPECT_TRUE(cache.LoadBaseline("studies/example", {}).has_value());
  EXPECT_TRUE(cache.LoadBaseline("studies/example", MakeValues({{"rows", 5}}))
                  .has_value());
  EXPECT_FALSE(cache.LoadBaseline("studies/example", MakeValues({{"rows", 6}}))
                   .has_value());
  EXPECT_FALSE(cache.LoadBaseline("studies/other", {}).has_value());
}

TEST(StudyCacheTest, ABrokenFileIsNothing) {
  const TempDir dir;
  const StudyCache cache(dir.path(), "a:1");
  CUBICML_ASSERT_OK(cache.SaveStudy(ExampleStudy()));
  WriteFileOrDie(dir.PathOf("a_1/example.study.json"), "{\"name\": ");
  EXPECT_EQ(cache.LoadStudy("studies/example"), std::nullopt);
}

}  // namespace
}  // namespace cubicml
