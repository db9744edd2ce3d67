// SPDX-License-Identifier: Apache-2.0
//
// kill -9 while many clients are at work: whatever was acknowledged is there
// after the restart.

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "gtest/gtest.h"
#include "tests/e2e/e2e_test.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

constexpr int kClients = 16;
constexpr int kRounds = 4;

// What the service said it had done.
struct Acknowledged {
  Mutex mu;
  std::map<std::string, double> completed ABSL_GUARDED_BY(mu);
  std::map<std::string, std::string> handed_out ABSL_GUARDED_BY(mu);
  std::map<std::string, std::string> request_ids ABSL_GUARDED_BY(mu);
};

std::string ShowParameters(const v1::Trial& trial) {
  const std::map<std::string, v1::Value> sorted(trial.parameters().begin(),
                                                trial.parameters().end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    absl::StrAppend(&text, name, "=", value.ShortDebugString(), ";");
  }
  return text;
}

class CrashTest : public E2eTest {
 protected:
  // Asks and reports until the server is gone.
  void Work(int round, int client) {
    const auto stub = server_->NewStub();
    const std::string client_id = absl::StrCat("c", round, "-", client);
    for (int i = 0;; ++i) {
      v1::SuggestTrialsRequest suggest;
      suggest.set_parent("studies/ads");
      suggest.set_client_id(client_id);
      suggest.set_request_id(absl::StrCat(client_id, "-", i));
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::SuggestTrialsResponse suggested;
      if (!stub->SuggestTrials(&context, suggest, &suggested).ok()) return;
      if (suggested.trials_size() != 1) return;
      const v1::Trial& trial = suggested.trials(0);
      {
        MutexLock lock(&acknowledged_.mu);
        acknowledged_.handed_out[trial.name()] = ShowParameters(trial);
        acknowledged_.request_ids[suggest.request_id()] = trial.name();
      }
      if (i % 4 == 3) return;  // a job that dies with its trial
      v1::CompleteTrialRequest complete;
      complete.set_name(trial.name());
      complete.set_client_id(client_id);
      complete.set_state(v1::Trial::SUCCEEDED);
      const double qps = round * 1000 + client + i / 128.0;
      (*complete.mutable_metrics())["qps"] = qps;
      grpc::ClientContext complete_context;
      SetDeadline(&complete_context);
      v1::Trial completed;
      if (!stub->CompleteTrial(&complete_context, complete, &completed).ok()) {
        return;
      }
      ++completions_;
      MutexLock lock(&acknowledged_.mu);
      acknowledged_.completed[trial.name()] = qps;
    }
  }

  void ExpectAllThere() {
    std::map<std::string, v1::Trial> stored;
    for (const v1::Trial& trial : Export("studies/ads")) {
      EXPECT_TRUE(stored.emplace(trial.name(), trial).second)
          << trial.name() << " is there twice";
    }
    MutexLock lock(&acknowledged_.mu);
    for (const auto& [name, parameters] : acknowledged_.handed_out) {
      ASSERT_EQ(stored.count(name), 1u) << name << " is lost";
      EXPECT_EQ(ShowParameters(stored.at(name)), parameters);
    }
    for (const auto& [name, qps] : acknowledged_.completed) {
      ASSERT_EQ(stored.count(name), 1u) << name << " is lost";
      EXPECT_EQ(stored.at(name).state(), v1::Trial::SUCCEEDED) << name;
      EXPECT_EQ(stored.at(name).metrics().at("qps"), qps) << name;
    }
  }

  // A client that never saw the answer asks again: it gets the same trial.
  void ExpectRequestIdsRemembered(int round) {
    std::map<std::string, std::string> request_ids;
    {
      MutexLock lock(&acknowledged_.mu);
      request_ids = acknowledged_.request_ids;
    }
    // The first request of whichever client got an answer in this round.
    std::string client_id;
    std::string request_id;
    for (int client = 0; client < kClients && request_id.empty(); ++client) {
      client_id = absl::StrCat("c", round, "-", client);
      if (request_ids.contains(client_id + "-0")) request_id = client_id + "-0";
    }
    ASSERT_FALSE(request_id.empty()) << "nobody was answered";
    v1::SuggestTrialsRequest suggest;
    suggest.set_parent("studies/ads");
    suggest.set_client_id(client_id);
    suggest.set_request_id(request_id);
    v1::SuggestTrialsResponse suggested;
    const grpc::Status status =
        Call(&TuningStub::SuggestTrials, suggest, &suggested);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(suggested.trials_size(), 1);
    EXPECT_EQ(suggested.trials(0).name(), request_ids[request_id]);
  }

  Acknowledged acknowledged_;
  std::atomic<int> completions_{0};
};

TEST_F(CrashTest, NothingAcknowledgedIsLostByKillingTheServer) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  for (int round = 1; round <= kRounds; ++round) {
    const int goal = completions_ + 10 * round;
    std::vector<std::thread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([this, round, client] { Work(round, client); });
    }
    WaitUntil(absl::Seconds(60), [&] { return completions_ >= goal; });
    server_->Kill();
    for (std::thread& client : clients) client.join();
    EXPECT_GE(completions_, goal);
    StartServer();
    ExpectAllThere();
    ExpectRequestIdsRemembered(round);
  }
  // And the server that has come back so often works like any other.
  const int before = completions_;
  const int last = kRounds + 1;
  Work(last, 0);
  EXPECT_EQ(completions_, before + 3);
  ExpectAllThere();
}

TEST_F(CrashTest, AnImportThatWasAcknowledgedSurvives) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  std::vector<v1::Trial> history;
  for (int i = 1; i <= 500; ++i) history.push_back(MeasuredTrial(i, i));
  v1::ImportTrialsResponse imported;
  ASSERT_TRUE(Import("studies/ads", history, &imported).ok());
  server_->Kill();
  StartServer();
  EXPECT_EQ(Export("studies/ads").size(), 500u);
  EXPECT_EQ(GetStudy("studies/ads").progress().best_objective(), 500);
}

}  // namespace
}  // namespace cubicml
