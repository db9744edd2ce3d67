// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/study_service.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

// The configuration as text, the same for the same.
std::string Key(const v1::Trial& trial) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : trial.parameters()) {
    sorted[name] = value.ShortDebugString();
  }
  std::string key;
  for (const auto& [name, value] : sorted) {
    absl::StrAppend(&key, name, "=", value, ";");
  }
  return key;
}

int64_t Param(const v1::Trial& trial, const std::string& name) {
  return trial.parameters().at(name).int64_value();
}

// A smooth objective with its best at x = 11, y = 4.
double Score(const v1::Trial& trial) {
  const double x = static_cast<double>(Param(trial, "x")) - 11.0;
  const double y = static_cast<double>(Param(trial, "y")) - 4.0;
  return 100.0 - x * x - y * y - 0.5 * x * y;
}

// What a linear model can learn.
double Slope(const v1::Trial& trial) {
  return 3.0 * static_cast<double>(Param(trial, "x")) -
         2.0 * static_cast<double>(Param(trial, "y"));
}

class SuggestTest : public ::testing::Test {
 protected:
  // Suggests, completes and trains `rounds` times; returns the best score.
  double RunRounds(const std::string& study, int rounds) {
    double best = -1e9;  // below every score
    for (int i = 0; i < rounds; ++i) {
      const v1::Trial trial = fixture_.SuggestOne(study);
      if (trial.name().empty()) break;
      EXPECT_THAT(fixture_.Complete(trial.name(), {{"score", Slope(trial)}}),
                  IsOk());
      best = std::max(best, Slope(trial));
      fixture_.Train();
    }
    return best;
  }

  FakeClock clock_;
  FakeStudyStore store_{&clock_};
  ServiceFixture fixture_{&store_, &clock_};
};

TEST_F(SuggestTest, TheBaselineComesFirstThenTheDesignThenTheModel) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial first = fixture_.SuggestOne("a");
  EXPECT_EQ(first.name(), "studies/a/trials/1");
  EXPECT_EQ(first.state(), v1::Trial::ACTIVE);
  EXPECT_EQ(first.attempt(), 1);
  EXPECT_EQ(first.suggestion().source(), v1::Trial::BASELINE);
  EXPECT_EQ(Param(first, "x"), 0);
  std::vector<v1::Trial> trials = {first};
  for (int i = 0; i < 8; ++i) {
    ASSERT_THAT(fixture_.Complete(trials.back().name(),
                                  {{"score", Score(trials.back())}}),
                IsOk());
    fixture_.Train();
    trials.push_back(fixture_.SuggestOne("a"));
  }
  for (size_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(trials[i].suggestion().source(), v1::Trial::INITIAL_DESIGN) << i;
  }
  for (size_t i = 5; i < trials.size(); ++i) {
    const v1::Suggestion& suggestion = trials[i].suggestion();
    EXPECT_EQ(suggestion.source(), v1::Trial::SEARCH) << i;
    EXPECT_GT(suggestion.model_version(), 0);
    EXPECT_FALSE(suggestion.searcher().empty());
    EXPECT_TRUE(suggestion.has_acquisition());
    EXPECT_NE(suggestion.seed(), 0U);
    EXPECT_EQ(suggestion.prediction().metrics().count("score"), 1U);
  }
  // Each from the model of the trial before.
  EXPECT_LT(trials[5].suggestion().model_version(),
            trials[6].suggestion().model_version());
}

TEST_F(SuggestTest, NothingIsSuggestedTwiceUntilTheSpaceIsExhausted) {
  v1::Study study = PlainStudy();
  study.mutable_parameters(0)->mutable_integer()->set_max(3);
  study.mutable_parameters(1)->mutable_integer()->set_max(4);
  fixture_.Create("a", study);
  std::set<std::string> seen;
  std::vector<std::string> running;
  for (int i = 0; i < 5; ++i) {
    const auto response = fixture_.Suggest(fixture_.MakeRequest("a", 4));
    ASSERT_THAT(response, IsOk());
    ASSERT_EQ(response->trials_size(), 4);
    for (const v1::Trial& trial : response->trials()) {
      EXPECT_TRUE(seen.insert(Key(trial)).second) << Key(trial);
      running.push_back(trial.name());
    }
    if (i == 2) {
      ASSERT_THAT(fixture_.Complete(running[0], {{"score", 1.0}}), IsOk());
    }
    fixture_.Train();
  }
  EXPECT_EQ(seen.size(), 20U);
  auto response = fixture_.Suggest(fixture_.MakeRequest("a"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->trials_size(), 0);
  EXPECT_EQ(response->no_trial_reason(), v1::SuggestTrialsResponse::EXHAUSTED);
  EXPECT_TRUE(response->has_retry_delay());
  for (size_t i = 1; i < running.size(); ++i) {
    ASSERT_THAT(fixture_.Complete(running[i], {{"score", 1.0}}), IsOk());
  }
  response = fixture_.Suggest(fixture_.MakeRequest("a"));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->no_trial_reason(), v1::SuggestTrialsResponse::EXHAUSTED);
  EXPECT_FALSE(response->has_retry_delay());
}

TEST_F(SuggestTest, ConstraintsHoldInEverySuggestion) {
  fixture_.Create("llm", TrainingStudy());
  for (int i = 0; i < 6; ++i) {
    const auto response = fixture_.Suggest(fixture_.MakeRequest("llm", 5));
    ASSERT_THAT(response, IsOk());
    for (const v1::Trial& trial : response->trials()) {
      EXPECT_EQ(Param(trial, "tp") * Param(trial, "dp"), 8);
      ASSERT_THAT(fixture_.Complete(trial.name(), {{"qps", 1.0 * i}}), IsOk());
    }
    fixture_.Train();
  }
}

TEST_F(SuggestTest, AContextThatNothingFitsSaysWhichConstraintIsToBlame) {
  fixture_.Create("llm", TrainingStudy());
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("llm");
  (*request.mutable_context())["gpus"] = IntegerValue(7);
  const auto response = fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->no_trial_reason(),
            v1::SuggestTrialsResponse::NO_VALID_CONFIGURATION);
  EXPECT_THAT(response->no_trial_detail(), HasSubstr("tp * dp = gpus"));
}

TEST_F(SuggestTest, WhereTheDefaultsAreNotValidTheNearestConfigurationIsFirst) {
  fixture_.Create("llm", TrainingStudy());
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("llm");
  (*request.mutable_context())["gpus"] = IntegerValue(16);
  const auto response = fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  ASSERT_EQ(response->trials_size(), 1);
  const v1::Trial& trial = response->trials(0);
  EXPECT_EQ(trial.suggestion().source(), v1::Trial::INITIAL_DESIGN);
  EXPECT_EQ(trial.suggestion().searcher(), "default-neighbour");
  EXPECT_EQ(Param(trial, "tp"), 2);
  EXPECT_EQ(Param(trial, "dp"), 8);
}

TEST_F(SuggestTest, BadRequestsAreRefusedByField) {
  fixture_.Create("llm", TrainingStudy());
  struct Case {
    const char* field;
    std::function<void(v1::SuggestTrialsRequest*)> spoil;
  };
  const Case cases[] = {
      {"parent", [](auto* r) { r->set_parent("llm"); }},
      {"count", [](auto* r) { r->set_count(-1); }},
      {"count", [](auto* r) { r->set_count(101); }},
      {"client_id", [](auto* r) { r->set_client_id(std::string(129, 'x')); }},
      {"client_id", [](auto* r) { r->set_client_id("\xff"); }},
      {"mode",
       [](auto* r) {
         r->set_mode(static_cast<v1::SuggestTrialsRequest::Mode>(9));
       }},
      {"request_id", [](auto* r) { r->set_request_id("a\nb"); }},
      {"labels", [](auto* r) { (*r->mutable_labels())[""] = "x"; }},
      {"context.gpus", [](auto* r) { r->clear_context(); }},
      {"context.gpus",
       [](auto* r) {
         (*r->mutable_context())["gpus"].set_string_value("eight");
       }},
      {"context.nodes",
       [](auto* r) { (*r->mutable_context())["nodes"] = IntegerValue(1); }},
      {"fixed_parameters.pp",
       [](auto* r) {
         (*r->mutable_fixed_parameters())["pp"] = IntegerValue(1);
       }},
      {"fixed_parameters.tp",
       [](auto* r) {
         (*r->mutable_fixed_parameters())["tp"] = IntegerValue(3);
       }},
      {"fixed_parameters.tp",
       [](auto* r) {
         (*r->mutable_fixed_parameters())["tp"].set_double_value(HUGE_VAL);
       }},
  };
  for (const Case& test : cases) {
    v1::SuggestTrialsRequest request = fixture_.MakeRequest("llm");
    test.spoil(&request);
    const absl::Status status = fixture_.Suggest(request).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument))
        << test.field;
    EXPECT_EQ(FieldNamedBy(status), test.field) << status;
  }
  EXPECT_EQ(fixture_.SuggestOne("llm").name(), "studies/llm/trials/1");
}

TEST_F(SuggestTest, FixedParametersAreKept) {
  fixture_.Create("llm", TrainingStudy());
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("llm", 3);
  (*request.mutable_fixed_parameters())["tp"] = IntegerValue(4);
  for (int i = 0; i < 4; ++i) {
    const auto response = fixture_.Suggest(request);
    ASSERT_THAT(response, IsOk());
    ASSERT_EQ(response->trials_size(), 3);
    for (const v1::Trial& trial : response->trials()) {
      EXPECT_EQ(Param(trial, "tp"), 4);
      ASSERT_THAT(fixture_.Complete(trial.name(), {{"qps", 1.0 + i}}), IsOk());
    }
    fixture_.Train();
  }
}

TEST_F(SuggestTest, ARequestIdGivesTheSameTrials) {
  fixture_.Create("a", PlainStudy());
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("a", 2);
  request.set_request_id("once");
  const auto first = fixture_.Suggest(request);
  ASSERT_THAT(first, IsOk());
  const auto second = fixture_.Suggest(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(*second, EqualsProto(*first));
  fixture_.Restart();
  EXPECT_THAT(*fixture_.Suggest(request), EqualsProto(*first));
  request.set_count(3);
  EXPECT_EQ(FieldNamedBy(fixture_.Suggest(request).status()), "request_id");
}

TEST_F(SuggestTest, AClientGetsItsOwnActiveTrialsFirst) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial mine = fixture_.SuggestOne("a", "job");
  fixture_.SuggestOne("a", "other job");
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(fixture_.SuggestOne("a", "job").name(), mine.name());
  fixture_.Restart();
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("a", 2);
  request.set_client_id("job");
  const auto response = fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  ASSERT_EQ(response->trials_size(), 2);
  EXPECT_EQ(response->trials(0).name(), mine.name());
  EXPECT_EQ(response->trials(1).name(), "studies/a/trials/3");
  // The lease was renewed when the trial was given again.
  EXPECT_GT(response->trials(0).lease_expire_time().seconds(),
            mine.lease_expire_time().seconds());
  EXPECT_NE(fixture_.SuggestOne("a").name(), mine.name());
}

TEST_F(SuggestTest, AnAbandonedConfigurationIsHandedOutAgainThreeTimesAtMost) {
  fixture_.Create("a", PlainStudy());
  v1::Trial trial = fixture_.SuggestOne("a");
  const std::string key = Key(trial);
  for (int attempt = 2; attempt <= 3; ++attempt) {
    ASSERT_THAT(
        fixture_.End(trial.name(), v1::Trial::ABANDONED, v1::Trial::PREEMPTED),
        IsOk());
    if (attempt == 3) fixture_.Restart();
    trial = fixture_.SuggestOne("a");
    EXPECT_EQ(Key(trial), key);
    EXPECT_EQ(trial.attempt(), attempt);
    EXPECT_EQ(trial.suggestion().source(), v1::Trial::REISSUED);
  }
  ASSERT_THAT(
      fixture_.End(trial.name(), v1::Trial::ABANDONED, v1::Trial::PREEMPTED),
      IsOk());
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(Key(fixture_.SuggestOne("a")), key);
  }
}

TEST_F(SuggestTest, ExploitRepeatsTheBestThatWasMeasured) {
  fixture_.Create("a", PlainStudy());
  double best = -1e9;
  std::string best_key;
  for (int i = 0; i < 6; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", Score(trial)}}),
                IsOk());
    if (Score(trial) > best) {
      best = Score(trial);
      best_key = Key(trial);
    }
  }
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("a", 2);
  request.set_mode(v1::SuggestTrialsRequest::EXPLOIT);
  const auto response = fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  ASSERT_EQ(response->trials_size(), 2);
  for (const v1::Trial& trial : response->trials()) {
    EXPECT_EQ(Key(trial), best_key);
    EXPECT_EQ(trial.suggestion().source(), v1::Trial::REPEAT);
  }
  // A lost repeat is not handed out again.
  ASSERT_THAT(fixture_.End(response->trials(0).name(), v1::Trial::ABANDONED,
                           v1::Trial::PREEMPTED),
              IsOk());
  EXPECT_NE(Key(fixture_.SuggestOne("a")), best_key);
}

TEST_F(SuggestTest, TheBaselineCanBeMeasuredAgain) {
  fixture_.Create("a", PlainStudy());
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("a");
  request.set_mode(v1::SuggestTrialsRequest::REMEASURE_BASELINE);
  const auto first = fixture_.Suggest(request);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->trials(0).suggestion().source(), v1::Trial::BASELINE);
  const auto second = fixture_.Suggest(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->trials(0).suggestion().source(), v1::Trial::REPEAT);
  EXPECT_EQ(Key(second->trials(0)), Key(first->trials(0)));
  fixture_.Create("llm", TrainingStudy());
  request = fixture_.MakeRequest("llm");
  (*request.mutable_context())["gpus"] = IntegerValue(16);
  request.set_mode(v1::SuggestTrialsRequest::REMEASURE_BASELINE);
  EXPECT_THAT(fixture_.Suggest(request),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("tp * dp = gpus")));
}

TEST_F(SuggestTest, WhoCannotWaitForTheStudyToBeLoadedIsToldToComeBack) {
  fixture_.Create("a", PlainStudy());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  absl::StatusOr<v1::SuggestTrialsResponse> meanwhile =
      absl::UnknownError("not asked");
  store_.SetScanHook([&] {
    meanwhile = fixture_.service().SuggestTrials(
        request, clock_.Elapsed() + absl::Milliseconds(20));
  });
  EXPECT_EQ(fixture_.Suggest(request)->trials_size(), 1);
  ASSERT_THAT(meanwhile, IsOk());
  EXPECT_EQ(meanwhile->trials_size(), 0);
  EXPECT_EQ(meanwhile->no_trial_reason(), v1::SuggestTrialsResponse::BUSY);
  EXPECT_TRUE(meanwhile->has_retry_delay());
  EXPECT_EQ(store_.scans(), 1);
}

TEST_F(SuggestTest, ADeadlineWithoutTimeToThinkStillGetsAnAnswer) {
  fixture_.Create("a", PlainStudy());
  RunRounds("a", 7);
  const auto response = fixture_.service().SuggestTrials(
      fixture_.MakeRequest("a", 20), clock_.Elapsed() + absl::Milliseconds(4));
  ASSERT_THAT(response, IsOk());
  EXPECT_GT(response->trials_size(), 0);
  if (response->trials_size() < 20) {
    EXPECT_EQ(response->no_trial_reason(), v1::SuggestTrialsResponse::BUSY);
    EXPECT_TRUE(response->has_retry_delay());
  }
}

TEST_F(SuggestTest, NoTrialIsMadeThatNobodyReceives) {
  fixture_.Create("a", PlainStudy());
  const v1::SuggestTrialsRequest request = fixture_.MakeRequest("a", 3);
  const auto late = fixture_.service().SuggestTrials(request, clock_.Elapsed());
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(late->trials_size(), 0);
  EXPECT_EQ(late->no_trial_reason(), v1::SuggestTrialsResponse::BUSY);
  EXPECT_TRUE(late->has_retry_delay());
  EXPECT_THAT(
      fixture_.service().SuggestTrials(
          request, clock_.Elapsed() + absl::Seconds(60), [] { return true; }),
      StatusIs(absl::StatusCode::kCancelled));
  // What they would have got is there for the next.
  const v1::Trial next = fixture_.SuggestOne("a");
  EXPECT_EQ(next.name(), "studies/a/trials/1");
  EXPECT_EQ(next.suggestion().source(), v1::Trial::BASELINE);
}

TEST_F(SuggestTest, NothingIsSaidOfASpaceThatCouldNotBeLookedAt) {
  // No two squares have a sum of 3 modulo 4, which only a look at all pairs of
  // numbers tells: too many of them, unless one is fixed.
  v1::Study study = PlainStudy();
  for (v1::Parameter& parameter : *study.mutable_parameters()) {
    parameter.mutable_integer()->set_max(5000);
  }
  v1::ContextField& gpus = *study.add_context();
  gpus.set_name("gpus");
  gpus.set_type(v1::INTEGER);
  study.add_constraints()->set_expression("(x * x + y * y) % 4 = gpus");
  study.mutable_settings()->set_algorithm(v1::RANDOM);
  fixture_.Create("a", study);
  v1::SuggestTrialsRequest request = fixture_.MakeRequest("a");
  (*request.mutable_context())["gpus"] = IntegerValue(3);
  const auto response = fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->trials_size(), 0);
  EXPECT_EQ(response->no_trial_reason(), v1::SuggestTrialsResponse::BUSY)
      << response->no_trial_detail();
  EXPECT_TRUE(response->has_retry_delay());
  (*request.mutable_fixed_parameters())["x"] = IntegerValue(5);
  EXPECT_EQ(fixture_.Suggest(request)->no_trial_reason(),
            v1::SuggestTrialsResponse::NO_VALID_CONFIGURATION);
}

TEST_F(SuggestTest, TheSameSeedAndHistoryGiveTheSameSuggestions) {
  std::vector<std::string> keys[2];
  for (int run = 0; run < 2; ++run) {
    FakeClock clock;
    FakeStudyStore store(&clock);
    ServiceFixture fixture(&store, &clock);
    fixture.Create("a", PlainStudy());
    for (int i = 0; i < 15; ++i) {
      // In the second run the process restarts all the time.
      if (run == 1) fixture.Restart();
      const v1::Trial trial = fixture.SuggestOne("a");
      keys[run].push_back(Key(trial));
      if (run == 1) fixture.Restart();
      ASSERT_THAT(fixture.Complete(trial.name(), {{"score", Score(trial)}}),
                  IsOk());
      fixture.Train();
    }
  }
  EXPECT_EQ(keys[0], keys[1]);
}

TEST_F(SuggestTest, TheDefaultBeatsRandomSearch) {
  double regret[2] = {0.0, 0.0};
  for (int seed = 1; seed <= 10; ++seed) {
    for (int random = 0; random < 2; ++random) {
      v1::Study study = PlainStudy();
      study.mutable_parameters(0)->mutable_integer()->set_max(31);
      study.mutable_parameters(1)->mutable_integer()->set_max(31);
      study.mutable_settings()->set_seed(static_cast<uint64_t>(seed));
      if (random == 1) study.mutable_settings()->set_algorithm(v1::RANDOM);
      const std::string id = absl::StrCat("s", seed, random == 1 ? "r" : "d");
      fixture_.Create(id, study);
      regret[random] += 3.0 * 31.0 - RunRounds(id, 15);
    }
  }
  EXPECT_LT(regret[0], 0.5 * regret[1]);
}

}  // namespace
}  // namespace cubicml
