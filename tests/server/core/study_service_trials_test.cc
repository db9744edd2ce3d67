// SPDX-License-Identifier: Apache-2.0
//
// The calls about trials, but for SuggestTrials.

#include <cmath>
#include <functional>
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TrialsTest : public ::testing::Test {
 protected:
  TrialsTest() { fixture_.Create("llm", TrainingStudy()); }

  v1::StudyProgress Progress(const std::string& study) {
    v1::GetStudyRequest request;
    request.set_name(study);
    const absl::StatusOr<v1::Study> read = fixture_.service().GetStudy(request);
    EXPECT_THAT(read, IsOk());
    return read.ok() ? read->progress() : v1::StudyProgress();
  }

  static v1::Trial MakeImport(int64_t tp, double qps) {
    v1::Trial trial;
    trial.set_state(v1::Trial::SUCCEEDED);
    (*trial.mutable_parameters())["tp"] = IntegerValue(tp);
    (*trial.mutable_parameters())["dp"] = IntegerValue(8 / tp);
    (*trial.mutable_parameters())["schedule"].set_string_value("1f1b");
    v1::Value& sharding = (*trial.mutable_parameters())["sharding"];
    for (int i = 0; i < 3; ++i) {
      *sharding.mutable_list_value()->add_values() = IntegerValue(0);
    }
    (*trial.mutable_context())["gpus"] = IntegerValue(8);
    (*trial.mutable_metrics())["qps"] = qps;
    return trial;
  }

  FakeClock clock_;
  FakeStudyStore store_{&clock_};
  ServiceFixture fixture_{&store_, &clock_};
};

TEST_F(TrialsTest, AMeasurementEndsATrialAndMovesTheProgress) {
  const v1::Trial baseline = fixture_.SuggestOne("llm");
  const v1::Trial second = fixture_.SuggestOne("llm");
  ASSERT_THAT(fixture_.Complete(baseline.name(), {{"qps", 100.0}}), IsOk());
  const absl::StatusOr<v1::Trial> done =
      fixture_.Complete(second.name(), {{"qps", 125.0}, {"memory", 70.0}});
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->state(), v1::Trial::SUCCEEDED);
  EXPECT_THAT(*fixture_.Get(second.name()), EqualsProto(*done));
  const v1::StudyProgress progress = Progress("studies/llm");
  EXPECT_EQ(progress.trials(), 2);
  EXPECT_EQ(progress.succeeded_trials(), 2);
  EXPECT_EQ(progress.active_trials(), 0);
  EXPECT_EQ(progress.baseline_objective(), 100.0);
  EXPECT_EQ(progress.best_objective(), 125.0);
  EXPECT_EQ(progress.best_trial(), second.name());
  EXPECT_EQ(progress.speedup(), 1.25);
  fixture_.Restart();
  EXPECT_THAT(Progress("studies/llm"), EqualsProto(progress));
}

TEST_F(TrialsTest, TheBestIsTheConfigurationThatIsTheBestOnAverage) {
  const std::string baseline = fixture_.SuggestOne("llm").name();
  const std::string lucky = fixture_.SuggestOne("llm").name();
  const std::string steady = fixture_.SuggestOne("llm").name();
  ASSERT_THAT(fixture_.Complete(baseline, {{"qps", 50.0}}), IsOk());
  ASSERT_THAT(fixture_.Complete(steady, {{"qps", 90.0}}), IsOk());
  ASSERT_THAT(fixture_.Complete(lucky, {{"qps", 100.0}}), IsOk());
  EXPECT_EQ(Progress("studies/llm").best_trial(), lucky);
  v1::SuggestTrialsRequest again = fixture_.MakeRequest("llm");
  again.set_mode(v1::SuggestTrialsRequest::EXPLOIT);
  const auto exploit = [&](double qps) {
    const auto suggested = fixture_.Suggest(again);
    ASSERT_THAT(suggested, IsOk());
    ASSERT_THAT(fixture_.Complete(suggested->trials(0).name(), {{"qps", qps}}),
                IsOk());
  };
  exploit(60.0);  // of the lucky one, now 80 on average
  v1::StudyProgress progress = Progress("studies/llm");
  EXPECT_EQ(progress.best_trial(), steady);
  EXPECT_EQ(progress.best_objective(), 90.0);
  exploit(86.0);  // of the steady one, 88
  progress = Progress("studies/llm");
  EXPECT_EQ(progress.best_trial(), steady);
  EXPECT_EQ(progress.best_objective(), 88.0);
  EXPECT_EQ(progress.speedup(), 1.76);
  v1::ListOptimalTrialsRequest list;
  list.set_parent("studies/llm");
  list.set_page_size(1);
  const auto optimal = fixture_.service().ListOptimalTrials(list);
  ASSERT_THAT(optimal, IsOk());
  EXPECT_EQ(optimal->trials(0).name(), steady);
  fixture_.Restart();
  EXPECT_THAT(Progress("studies/llm"), EqualsProto(progress));
  // One that fails as often as it works is not the best.
  for (int i = 0; i < 2; ++i) {
    const auto suggested = fixture_.Suggest(again);
    ASSERT_THAT(suggested, IsOk());
    ASSERT_EQ(suggested->trials(0).parameters().at("tp").int64_value(),
              fixture_.Get(steady)->parameters().at("tp").int64_value());
    ASSERT_THAT(fixture_.End(suggested->trials(0).name(), v1::Trial::INFEASIBLE,
                             v1::Trial::CRASH),
                IsOk());
  }
  EXPECT_EQ(Progress("studies/llm").best_trial(), lucky);
}

TEST_F(TrialsTest, BadCompletionsAreRefusedByFieldAndChangeNothing) {
  const v1::Trial trial = fixture_.SuggestOne("llm", "job");
  struct Case {
    const char* field;
    std::function<void(v1::CompleteTrialRequest*)> spoil;
  };
  const Case cases[] = {
      {"name", [](auto* r) { r->set_name("studies/llm/trials/x"); }},
      {"state", [](auto* r) { r->set_state(v1::Trial::EXPIRED); }},
      {"state", [](auto* r) { r->clear_state(); }},
      {"reason", [](auto* r) { r->set_reason(v1::Trial::CRASH); }},
      {"reason_detail",
       [](auto* r) { r->set_reason_detail(std::string(1025, 'x')); }},
      {"reason_detail", [](auto* r) { r->set_reason_detail("\xc3("); }},
      {"metrics.qps",
       [](auto* r) { (*r->mutable_metrics())["qps"] = std::nan(""); }},
      {"metrics.qps",
       [](auto* r) { (*r->mutable_metrics())["qps"] = HUGE_VAL; }},
      {"metrics.speed",
       [](auto* r) { (*r->mutable_metrics())["speed"] = 1.0; }},
      {"metrics", [](auto* r) { (*r->mutable_metrics())["a b"] = 1.0; }},
      {"request_id", [](auto* r) { r->set_request_id("\x01"); }},
      {"client_id", [](auto* r) { r->set_client_id("\xff"); }},
  };
  for (const Case& test : cases) {
    v1::CompleteTrialRequest request;
    request.set_name(trial.name());
    request.set_client_id("job");
    request.set_state(v1::Trial::SUCCEEDED);
    (*request.mutable_metrics())["qps"] = 1.0;
    test.spoil(&request);
    const absl::Status status =
        fixture_.service().CompleteTrial(request).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(FieldNamedBy(status), test.field) << status;
  }
  EXPECT_THAT(fixture_.Complete(trial.name(), {{"qps", 1.0}}, "thief"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fixture_.Complete("studies/llm/trials/99", {{"qps", 1.0}}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(*fixture_.Get(trial.name()), EqualsProto(trial));
  EXPECT_THAT(fixture_.Complete(trial.name(), {{"qps", 1.0}}, "job"), IsOk());
}

TEST_F(TrialsTest, ASecondCompletionIsTheSameAnswerOrRefused) {
  const v1::Trial trial = fixture_.SuggestOne("llm");
  const auto first = fixture_.Complete(trial.name(), {{"qps", 1.0}});
  ASSERT_THAT(first, IsOk());
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(*fixture_.Complete(trial.name(), {{"qps", 1.0}}),
              EqualsProto(*first));
  EXPECT_THAT(fixture_.Complete(trial.name(), {{"qps", 2.0}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is SUCCEEDED")));
  EXPECT_EQ(Progress("studies/llm").succeeded_trials(), 1);
}

TEST_F(TrialsTest, MetricConstraintsMakeATrialInfeasible) {
  fixture_.Create("a", BoundedStudy());
  const v1::Trial baseline = fixture_.SuggestOne("a");
  const v1::Trial hungry = fixture_.SuggestOne("a");
  const v1::Trial wrong = fixture_.SuggestOne("a");
  ASSERT_THAT(
      fixture_.Complete(baseline.name(),
                        {{"qps", 10.0}, {"loss", 2.0}, {"memory", 70.0}}),
      IsOk());
  auto done =
      fixture_.Complete(hungry.name(), {{"qps", 99.0}, {"memory", 79.0}});
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(done->reason(), v1::Trial::METRIC_CONSTRAINT);
  EXPECT_THAT(done->reason_detail(), HasSubstr("memory = 79 is above 76"));
  EXPECT_EQ(done->metrics().at("qps"), 99.0);
  done = fixture_.Complete(wrong.name(),
                           {{"qps", 99.0}, {"loss", 2.5}, {"memory", 70.0}});
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->state(), v1::Trial::INFEASIBLE);
  EXPECT_THAT(done->reason_detail(), HasSubstr("1.1 * baseline"));
  EXPECT_EQ(Progress("studies/a").best_objective(), 10.0);
}

TEST_F(TrialsTest, WhatDidNotMeasureAConstrainedMetricTeachesAndIsNotBest) {
  fixture_.Create("a", BoundedStudy());
  for (int i = 0; i < 8; ++i) {
    std::map<std::string, double> metrics = {
        {"qps", 10.0 + i}, {"loss", 2.0}, {"memory", 70.0}};
    if (i >= 4) metrics.erase("memory");
    const auto done =
        fixture_.Complete(fixture_.SuggestOne("a").name(), metrics);
    ASSERT_THAT(done, IsOk());
    if (i < 4) continue;
    EXPECT_EQ(done->state(), v1::Trial::INFEASIBLE);
    EXPECT_EQ(done->reason(), v1::Trial::NO_MEASUREMENT);
  }
  EXPECT_EQ(Progress("studies/a").best_objective(), 13.0);
  ASSERT_EQ(fixture_.Train(), 1);
  // All eight, and none as a configuration that does not run.
  const v1::SurrogateQuality surrogate = Progress("studies/a").surrogate();
  EXPECT_EQ(surrogate.rows(), 8);
  EXPECT_FALSE(surrogate.has_feasibility_auc());
}

TEST_F(TrialsTest, AJobThatMeasuredNothingIsInfeasible) {
  const v1::Trial trial = fixture_.SuggestOne("llm");
  const auto done = fixture_.Complete(trial.name(), {});
  ASSERT_THAT(done, IsOk());
  EXPECT_EQ(done->state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(done->reason(), v1::Trial::NO_MEASUREMENT);
}

TEST_F(TrialsTest, ACancelledTrialStopsAtItsNextHeartbeat) {
  const v1::Trial trial = fixture_.SuggestOne("llm");
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(trial.name());
  heartbeat.mutable_intermediate()->set_step(1);
  (*heartbeat.mutable_intermediate()->mutable_metrics())["qps"] = 5.0;
  auto beat = fixture_.service().Heartbeat(heartbeat);
  ASSERT_THAT(beat, IsOk());
  EXPECT_FALSE(beat->should_stop());
  EXPECT_EQ(beat->lease().seconds(), 600);
  EXPECT_EQ(fixture_.Get(trial.name())->intermediate().step(), 1);
  v1::CancelTrialRequest cancel;
  cancel.set_name(trial.name());
  EXPECT_EQ(fixture_.service().CancelTrial(cancel)->state(),
            v1::Trial::STOPPING);
  beat = fixture_.service().Heartbeat(heartbeat);
  ASSERT_THAT(beat, IsOk());
  EXPECT_TRUE(beat->should_stop());
  EXPECT_EQ(fixture_.service().CancelTrial(cancel)->state(),
            v1::Trial::CANCELLED);
  EXPECT_EQ(fixture_.service().CancelTrial(cancel)->state(),
            v1::Trial::CANCELLED);
  beat = fixture_.service().Heartbeat(heartbeat);
  ASSERT_THAT(beat, IsOk());
  EXPECT_TRUE(beat->should_stop());
  EXPECT_THAT(fixture_.Complete(trial.name(), {{"qps", 1.0}}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  (*heartbeat.mutable_intermediate()->mutable_metrics())["qps"] = std::nan("");
  EXPECT_EQ(FieldNamedBy(fixture_.service().Heartbeat(heartbeat).status()),
            "intermediate.metrics.qps");
}

TEST_F(TrialsTest, ImportsAreKeptAndRefusalsAreToldOneByOne) {
  std::vector<v1::Trial> trials = {MakeImport(1, 10.0), MakeImport(2, 20.0),
                                   MakeImport(3, 30.0), MakeImport(4, 40.0),
                                   MakeImport(8, std::nan(""))};
  trials[1].mutable_end_time()->set_seconds(1'600'000'000);
  trials[3].set_state(v1::Trial::ACTIVE);
  v1::ImportTrialsResponse response;
  ASSERT_THAT(
      fixture_.service().ImportTrials("studies/llm", trials, 100, &response),
      IsOk());
  EXPECT_EQ(response.imported(), 2);
  EXPECT_EQ(response.refused(), 3);
  ASSERT_EQ(response.refusals_size(), 3);
  EXPECT_EQ(response.refusals(0).index(), 102);
  EXPECT_THAT(response.refusals(0).message(), HasSubstr("parameters.tp"));
  EXPECT_THAT(response.refusals(1).message(), HasSubstr("state"));
  EXPECT_THAT(response.refusals(2).message(), HasSubstr("metrics.qps"));
  const absl::StatusOr<v1::Trial> stored = fixture_.Get("studies/llm/trials/2");
  ASSERT_THAT(stored, IsOk());
  EXPECT_EQ(stored->suggestion().source(), v1::Trial::IMPORTED);
  EXPECT_EQ(stored->end_time().seconds(), 1'600'000'000);
  EXPECT_EQ(Progress("studies/llm").succeeded_trials(), 2);
  EXPECT_THAT(
      fixture_.service().ImportTrials("studies/none", trials, 0, &response),
      StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TrialsTest, ImportedHistoryIsNotSuggestedAndCountsAsBaseline) {
  v1::Trial baseline = MakeImport(1, 10.0);
  v1::ImportTrialsResponse response;
  ASSERT_THAT(fixture_.service().ImportTrials("studies/llm", {&baseline, 1}, 0,
                                              &response),
              IsOk());
  ASSERT_EQ(response.imported(), 1);
  EXPECT_EQ(Progress("studies/llm").baseline_objective(), 10.0);
  EXPECT_EQ(fixture_.SuggestOne("llm").suggestion().source(),
            v1::Trial::INITIAL_DESIGN);
}

TEST_F(TrialsTest, AnImportIsJudgedTheSameHoweverItIsCut) {
  std::vector<v1::Trial> trials = {MakeImport(8, 10.0), MakeImport(1, 10.0),
                                   MakeImport(2, 20.0), MakeImport(4, 30.0)};
  const double losses[] = {9.0, 1.0, 2.0, 1.05};  // of the second at most 1.1
  for (size_t i = 0; i < trials.size(); ++i) {
    (*trials[i].mutable_metrics())["loss"] = losses[i];
    (*trials[i].mutable_metrics())["memory"] = 70;
  }
  for (const size_t cut : {size_t{1}, size_t{2}, size_t{4}}) {
    const std::string id = absl::StrCat("cut", cut);
    const std::string name = absl::StrCat("studies/", id);
    fixture_.Create(id, BoundedStudy());
    v1::ImportTrialsResponse response;
    for (size_t i = 0; i < trials.size(); i += cut) {
      ASSERT_THAT(
          fixture_.service().ImportTrials(name, {&trials[i], cut},
                                          static_cast<int64_t>(i), &response),
          IsOk());
    }
    ASSERT_EQ(response.imported(), 4);
    std::vector<v1::Trial::State> states;
    for (int number = 1; number <= 4; ++number) {
      states.push_back(
          fixture_.Get(absl::StrCat(name, "/trials/", number))->state());
    }
    EXPECT_THAT(states,
                ElementsAre(v1::Trial::SUCCEEDED, v1::Trial::SUCCEEDED,
                            v1::Trial::INFEASIBLE, v1::Trial::SUCCEEDED))
        << cut;
  }
}

TEST_F(TrialsTest, TheBestTrialsComeBestFirstAndOnlyOfTheContext) {
  std::vector<v1::Trial> trials = {MakeImport(1, 10.0), MakeImport(2, 30.0),
                                   MakeImport(4, 20.0), MakeImport(8, 40.0)};
  trials[3].set_state(v1::Trial::INFEASIBLE);
  trials[3].set_reason(v1::Trial::OUT_OF_MEMORY);
  v1::Trial elsewhere = MakeImport(8, 99.0);
  (*elsewhere.mutable_parameters())["dp"] = IntegerValue(8);
  (*elsewhere.mutable_context())["gpus"] = IntegerValue(64);
  trials.push_back(elsewhere);
  v1::ImportTrialsResponse imported;
  ASSERT_THAT(
      fixture_.service().ImportTrials("studies/llm", trials, 0, &imported),
      IsOk());
  ASSERT_EQ(imported.imported(), 5);
  v1::ListOptimalTrialsRequest request;
  request.set_parent("studies/llm");
  (*request.mutable_context())["gpus"] = IntegerValue(8);
  const auto best = fixture_.service().ListOptimalTrials(request);
  ASSERT_THAT(best, IsOk());
  std::vector<double> found;
  for (const v1::Trial& trial : best->trials()) {
    found.push_back(trial.metrics().at("qps"));
  }
  EXPECT_THAT(found, ElementsAre(30.0, 20.0, 10.0));
  request.clear_context();
  request.set_page_size(1);
  EXPECT_EQ(
      fixture_.service().ListOptimalTrials(request)->trials(0).metrics().at(
          "qps"),
      99.0);
  (*request.mutable_context())["nodes"] = IntegerValue(8);
  EXPECT_EQ(
      FieldNamedBy(fixture_.service().ListOptimalTrials(request).status()),
      "context.nodes");
}

TEST_F(TrialsTest, OfTwoObjectivesTheParetoFrontIsListed) {
  v1::Study study = PlainStudy();
  v1::Objective& memory = *study.add_objectives();
  memory.mutable_metric()->set_name("memory");
  memory.set_goal(v1::MINIMIZE);
  fixture_.Create("pareto", study);
  const std::vector<std::pair<double, double>> measured = {
      {10, 10}, {20, 30}, {15, 12}, {15, 11}, {5, 11}, {20, 30}};
  for (const auto& [score, used] : measured) {
    ASSERT_THAT(fixture_.Complete(fixture_.SuggestOne("pareto").name(),
                                  {{"score", score}, {"memory", used}}),
                IsOk());
  }
  v1::ListOptimalTrialsRequest request;
  request.set_parent("studies/pareto");
  const auto front = fixture_.service().ListOptimalTrials(request);
  ASSERT_THAT(front, IsOk());
  std::vector<std::string> names;
  for (const v1::Trial& trial : front->trials()) names.push_back(trial.name());
  EXPECT_THAT(
      names, ElementsAre("studies/pareto/trials/2", "studies/pareto/trials/6",
                         "studies/pareto/trials/4", "studies/pareto/trials/1"));
  const v1::Trial half = fixture_.SuggestOne("pareto");
  EXPECT_EQ(
      FieldNamedBy(fixture_.Complete(half.name(), {{"score", 1.0}}).status()),
      "metrics.memory");
}

TEST_F(TrialsTest, PredictionsNeedAModelAndNameTheConfigurationThatIsWrong) {
  v1::PredictRequest request;
  request.set_parent("studies/llm");
  for (const int tp : {1, 2}) {
    const v1::Trial trial = MakeImport(tp, 1.0);
    v1::Configuration& configuration = *request.add_configurations();
    *configuration.mutable_parameters() = trial.parameters();
    *configuration.mutable_context() = trial.context();
  }
  EXPECT_THAT(fixture_.service().Predict(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  std::vector<v1::Trial> trials = {MakeImport(1, 10.0), MakeImport(2, 20.0),
                                   MakeImport(4, 30.0), MakeImport(8, 40.0)};
  v1::ImportTrialsResponse imported;
  ASSERT_THAT(
      fixture_.service().ImportTrials("studies/llm", trials, 0, &imported),
      IsOk());
  EXPECT_EQ(fixture_.Train(), 1);
  const auto before = fixture_.service().Predict(request);
  ASSERT_THAT(before, IsOk());
  ASSERT_EQ(before->predictions_size(), 2);
  EXPECT_LT(before->predictions(0).metrics().at("qps").mean(),
            before->predictions(1).metrics().at("qps").mean());
  EXPECT_EQ(before->surrogate().rows(), 4);
  // The checkpoint is loaded after a restart, and is the same model.
  fixture_.Restart();
  EXPECT_THAT(*fixture_.service().Predict(request), EqualsProto(*before));
  (*request.mutable_configurations(1)->mutable_parameters())["tp"] =
      IntegerValue(3);
  EXPECT_EQ(FieldNamedBy(fixture_.service().Predict(request).status()),
            "configurations[1].parameters.tp");
}

TEST_F(TrialsTest, TrialsAreListedByPageAndExportedWhole) {
  for (int i = 0; i < 5; ++i) fixture_.SuggestOne("llm");
  v1::ListTrialsRequest list;
  list.set_parent("studies/llm");
  list.set_page_size(3);
  const auto page = fixture_.service().ListTrials(list);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->trials_size(), 3);
  EXPECT_FALSE(page->next_page_token().empty());
  v1::ExportTrialsRequest request;
  request.set_parent("studies/llm");
  std::vector<std::string> names;
  EXPECT_THAT(fixture_.service().ExportTrials(
                  request,
                  [&](v1::Trial&& trial) {
                    names.push_back(trial.name());
                    return absl::OkStatus();
                  },
                  TrialNumber{3}),
              IsOk());
  EXPECT_THAT(names,
              ElementsAre("studies/llm/trials/4", "studies/llm/trials/5"));
}

}  // namespace
}  // namespace cubicml
