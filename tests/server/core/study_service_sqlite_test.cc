// SPDX-License-Identifier: Apache-2.0
//
// The service on the real store: many clients at once, and going on where it
// was after the process is gone.

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/study_service.h"
#include "storage/sqlite_study_store.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

class SqliteServiceTest : public ::testing::Test {
 protected:
  SqliteServiceTest() { Open(); }

  // As when the process starts.
  void Open() {
    fixture_.reset();
    store_.reset();
    SqliteStudyStore::Options options;
    options.path = absl::StrCat(dir_.path(), "/studies.db");
    options.clock = &clock_;
    auto store = SqliteStudyStore::Open(options);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    fixture_ = std::make_unique<ServiceFixture>(store_.get(), &clock_);
  }

  v1::StudyProgress Progress() {
    v1::GetStudyRequest request;
    request.set_name("studies/a");
    const auto study = fixture_->service().GetStudy(request);
    EXPECT_THAT(study, IsOk());
    return study.ok() ? study->progress() : v1::StudyProgress();
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<SqliteStudyStore> store_;
  std::unique_ptr<ServiceFixture> fixture_;
};

TEST_F(SqliteServiceTest, ManyClientsNeverShareAConfigurationOrLoseAResult) {
  fixture_->Create("a", PlainStudy());
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  const v1::SuggestTrialsRequest request = fixture_->MakeRequest("a");
  Mutex mu;
  std::set<std::string> names;
  std::set<std::string> configurations;
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto response = fixture_->Suggest(request);
        ASSERT_THAT(response, IsOk());
        ASSERT_EQ(response->trials_size(), 1) << response->DebugString();
        const v1::Trial& trial = response->trials(0);
        {
          MutexLock lock(&mu);
          EXPECT_TRUE(names.insert(trial.name()).second);
          EXPECT_TRUE(configurations
                          .insert(absl::StrCat(
                              trial.parameters().at("x").int64_value(), ",",
                              trial.parameters().at("y").int64_value()))
                          .second);
        }
        EXPECT_THAT(fixture_->Complete(trial.name(), {{"score", 1.0 * t + i}}),
                    IsOk());
        if (t == 0) fixture_->Train();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const v1::StudyProgress progress = Progress();
  EXPECT_EQ(progress.succeeded_trials(), kThreads * kRounds);
  EXPECT_EQ(progress.best_objective(), kThreads + kRounds - 2.0);
  Open();
  EXPECT_THAT(Progress(), EqualsProto(progress));
}

TEST_F(SqliteServiceTest, ANewProcessGoesOnWithTheSameSuggestions) {
  // Two studies that differ in nothing but that the second lives through a
  // restart between any two calls.
  std::vector<std::string> suggested[2];
  for (int run = 0; run < 2; ++run) {
    const std::string id = run == 0 ? "smooth" : "restarted";
    fixture_->Create(id, PlainStudy());
    for (int i = 0; i < 10; ++i) {
      if (run == 1) Open();
      const v1::Trial trial = fixture_->SuggestOne(id);
      const int64_t x = trial.parameters().at("x").int64_value();
      const int64_t y = trial.parameters().at("y").int64_value();
      suggested[run].push_back(absl::StrCat(x, ",", y));
      if (run == 1) Open();
      const double score = static_cast<double>(3 * x - y);
      ASSERT_THAT(fixture_->Complete(trial.name(), {{"score", score}}), IsOk());
      fixture_->Train();
    }
  }
  EXPECT_EQ(suggested[0], suggested[1]);
}

TEST_F(SqliteServiceTest, LeasesOutliveTheProcess) {
  fixture_->Create("a", PlainStudy());
  const v1::Trial trial = fixture_->SuggestOne("a", "job");
  clock_.Advance(absl::Hours(5));
  Open();
  EXPECT_THAT(fixture_->service().ExpireLeases(), IsOkAndHolds(0));
  EXPECT_EQ(fixture_->SuggestOne("a", "job").name(), trial.name());
  clock_.Advance(absl::Minutes(11));
  EXPECT_THAT(fixture_->service().ExpireLeases(), IsOkAndHolds(1));
  const v1::Trial again = fixture_->SuggestOne("a", "job");
  EXPECT_EQ(again.suggestion().source(), v1::Trial::REISSUED);
  EXPECT_THAT(fixture_->Complete(trial.name(), {{"score", 1.0}}, "job"),
              IsOk());
  EXPECT_TRUE(fixture_->Get(trial.name())->late());
}

}  // namespace
}  // namespace cubicml
