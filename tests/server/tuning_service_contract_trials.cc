// SPDX-License-Identifier: Apache-2.0
//
// The calls that make and change trials.

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/core/service_fixture.h"
#include "tests/server/tuning_service_contract.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(60);

uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// ---- SuggestTrials ----

TEST_P(TuningServiceContractTest, ASuggestionIsStoredAsItWasHandedOut) {
  Create("a", TrainingStudy());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  request.set_count(3);
  request.set_client_id("job \xe6\x97\xa5");
  (*request.mutable_context())["gpus"] = IntegerValue(8);
  (*request.mutable_labels())["run"] = "1";
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto response,
                               service_->SuggestTrials(request));
  ASSERT_EQ(response.trials_size(), 3);
  EXPECT_EQ(response.trials(0).suggestion().source(), v1::Trial::BASELINE);
  const std::vector<v1::Trial> exported = Export("a");
  const std::vector<v1::Trial> listed = ListTrials("a", "", "", 2);
  ASSERT_THAT(exported, SizeIs(3));
  ASSERT_THAT(listed, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    const v1::Trial& trial = response.trials(i);
    const auto index = static_cast<size_t>(i);
    EXPECT_EQ(trial.name(), absl::StrCat("studies/a/trials/", i + 1));
    EXPECT_EQ(trial.state(), v1::Trial::ACTIVE);
    EXPECT_EQ(trial.client_id(), request.client_id());
    EXPECT_EQ(trial.attempt(), 1);
    EXPECT_TRUE(trial.has_lease_expire_time());
    EXPECT_EQ(trial.labels().at("run"), "1");
    EXPECT_EQ(trial.context().at("gpus").int64_value(), 8);
    EXPECT_EQ(trial.parameters().at("tp").int64_value() *
                  trial.parameters().at("dp").int64_value(),
              8);
    EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
    EXPECT_THAT(listed[index], EqualsProto(trial));
    EXPECT_THAT(exported[index], EqualsProto(trial));
  }
}

TEST_P(TuningServiceContractTest, NumbersGoOnAndNoneIsUsedAgain) {
  Create("a");
  EXPECT_THAT(NamesOf(Suggest("a", 2)),
              ElementsAre("studies/a/trials/1", "studies/a/trials/2"));
  ASSERT_THAT(Cancel("studies/a/trials/2"), IsOk());
  ASSERT_THAT(Cancel("studies/a/trials/2"), IsOk());
  EXPECT_EQ(Import("a", {Measured(15, 15, 1)}).imported(), 1);
  EXPECT_THAT(NamesOf(Suggest("a")), ElementsAre("studies/a/trials/4"));
  EXPECT_THAT(NamesOf(Export("a")),
              ElementsAre("studies/a/trials/1", "studies/a/trials/2",
                          "studies/a/trials/3", "studies/a/trials/4"));
}

TEST_P(TuningServiceContractTest, AClientGetsItsOwnActiveTrialsFirst) {
  Create("a");
  const std::vector<v1::Trial> first = Suggest("a", 2, "job");
  EXPECT_THAT(NamesOf(Suggest("a", 1, "other")),
              ElementsAre("studies/a/trials/3"));
  EXPECT_EQ(NamesOf(Suggest("a", 2, "job")), NamesOf(first));
  EXPECT_THAT(NamesOf(Suggest("a", 3, "job")),
              ElementsAre("studies/a/trials/1", "studies/a/trials/2",
                          "studies/a/trials/4"));
  ASSERT_THAT(Complete(first[0].name(), {{"score", 1}}, "job"), IsOk());
  EXPECT_THAT(NamesOf(Suggest("a", 1, "job")),
              ElementsAre("studies/a/trials/2"));
}

TEST_P(TuningServiceContractTest, AnExhaustedSpaceSaysSo) {
  v1::Study study = PlainStudy();
  study.mutable_parameters(0)->mutable_integer()->set_max(1);
  study.mutable_parameters()->RemoveLast();
  Create("a", study);
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  request.set_count(5);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto response,
                               service_->SuggestTrials(request));
  EXPECT_EQ(response.trials_size(), 2);
  EXPECT_EQ(response.no_trial_reason(), v1::SuggestTrialsResponse::EXHAUSTED);
  EXPECT_FALSE(response.no_trial_detail().empty());
}

TEST_P(TuningServiceContractTest, AContextThatNothingFitsSaysSo) {
  Create("a", TrainingStudy());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  (*request.mutable_context())["gpus"] = IntegerValue(7);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto response,
                               service_->SuggestTrials(request));
  EXPECT_THAT(response.trials(), IsEmpty());
  EXPECT_EQ(response.no_trial_reason(),
            v1::SuggestTrialsResponse::NO_VALID_CONFIGURATION);
  EXPECT_THAT(response.no_trial_detail(), HasSubstr("tp * dp = gpus"));
  EXPECT_THAT(Export("a"), IsEmpty());
}

TEST_P(TuningServiceContractTest, BadSuggestionsAreRefusedByField) {
  Create("a", TrainingStudy());
  struct Case {
    const char* field;
    std::function<void(v1::SuggestTrialsRequest*)> spoil;
  };
  const Case cases[] = {
      {"count", [](auto* r) { r->set_count(101); }},
      {"count", [](auto* r) { r->set_count(-1); }},
      {"client_id", [](auto* r) { r->set_client_id(std::string(129, 'x')); }},
      {"context.gpus", [](auto* r) { r->clear_context(); }},
      {"context.gpus",
       [](auto* r) { (*r->mutable_context())["gpus"].set_string_value("8"); }},
      {"context.nodes",
       [](auto* r) { (*r->mutable_context())["nodes"] = IntegerValue(1); }},
      {"fixed_parameters.tp",
       [](auto* r) {
         (*r->mutable_fixed_parameters())["tp"] = IntegerValue(3);
       }},
      {"fixed_parameters.none",
       [](auto* r) {
         (*r->mutable_fixed_parameters())["none"] = IntegerValue(3);
       }},
      {"mode",
       [](auto* r) {
         r->set_mode(static_cast<v1::SuggestTrialsRequest::Mode>(9));
       }},
      {"labels", [](auto* r) { (*r->mutable_labels())[""] = "x"; }},
      {"request_id", [](auto* r) { r->set_request_id(std::string(65, 'x')); }},
  };
  for (const Case& test : cases) {
    v1::SuggestTrialsRequest request;
    request.set_parent("studies/a");
    (*request.mutable_context())["gpus"] = IntegerValue(8);
    test.spoil(&request);
    EXPECT_THAT(service_->SuggestTrials(request), RefusesField(test.field));
  }
  EXPECT_THAT(Export("a"), IsEmpty());
}

// ---- Values ----

TEST_P(TuningServiceContractTest, ValuesOfEveryTypeComeBackBitForBit) {
  const v1::Study study = TypedStudy();
  Create("a", study);
  std::vector<v1::Trial> given;
  for (int i = 0; i < 3; ++i) {
    v1::Trial trial;
    trial.set_state(v1::Trial::SUCCEEDED);
    auto& parameters = *trial.mutable_parameters();
    parameters["wide"] = IntegerValue(study.parameters(0).integer().values(i));
    parameters["exact"] = study.parameters(1).category().values(i);
    parameters["text"] = study.parameters(2).category().values(i);
    parameters["flag"] = study.parameters(3).category().values(i % 2);
    for (const int layer : {i, 3 - i}) {
      *parameters["layers"].mutable_list_value()->add_values() =
          IntegerValue(layer);
    }
    auto& context = *trial.mutable_context();
    const int64_t largest = int64_t{1} << 53;
    context["gpus"] = IntegerValue(i == 0 ? -largest : largest);
    context["rate"].set_double_value(
        i == 0 ? std::numeric_limits<double>::denorm_min()
               : std::nextafter(0.3, i));
    if (i != 1) context["cluster"].set_string_value("\xc3\xa9 \t\"x'\\");
    context["spot"].set_bool_value(i == 1);
    auto& metrics = *trial.mutable_metrics();
    metrics["score"] = i == 0 ? std::numeric_limits<double>::max()
                              : std::nextafter(1.0, 2.0 * i);
    metrics["memory"] =
        i == 0 ? -std::numeric_limits<double>::denorm_min() : 0.1 + 0.2;
    (*trial.mutable_labels())["\xe6\x97\xa5"] = "\xe6\x9c\xac\n";
    trial.mutable_end_time()->set_seconds(1'600'000'000 + i);
    trial.mutable_end_time()->set_nanos(123'456'000);
    given.push_back(trial);
  }
  const v1::ImportTrialsResponse response = Import("a", given);
  ASSERT_EQ(response.imported(), 3) << response.ShortDebugString();
  const std::vector<v1::Trial> exported = Export("a");
  const std::vector<v1::Trial> listed = ListTrials("a", "", "", 100);
  ASSERT_THAT(exported, SizeIs(3));
  ASSERT_THAT(listed, SizeIs(3));
  for (size_t i = 0; i < given.size(); ++i) {
    const v1::Trial stored = GetTrial(exported[i].name());
    EXPECT_THAT(exported[i], EqualsProto(stored));
    EXPECT_THAT(listed[i], EqualsProto(stored));
    v1::Trial expected = given[i];
    expected.set_name(absl::StrCat("studies/a/trials/", i + 1));
    expected.set_attempt(1);
    expected.mutable_suggestion()->set_source(v1::Trial::IMPORTED);
    *expected.mutable_create_time() = stored.create_time();
    *expected.mutable_update_time() = stored.update_time();
    EXPECT_THAT(stored, EqualsProto(expected));
    // Two doubles that a comparison takes for equal, as 0 and -0, are not.
    for (const auto& [name, value] : given[i].metrics()) {
      EXPECT_EQ(BitsOf(stored.metrics().at(name)), BitsOf(value));
    }
    EXPECT_EQ(BitsOf(stored.context().at("rate").double_value()),
              BitsOf(given[i].context().at("rate").double_value()));
  }
}

TEST_P(TuningServiceContractTest, NumbersThatAreNotExactAreRefused) {
  Create("a", TrainingStudy());
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  for (const int64_t value :
       {std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max(), (int64_t{1} << 53) + 1}) {
    (*request.mutable_context())["gpus"] = IntegerValue(value);
    EXPECT_THAT(service_->SuggestTrials(request), RefusesField("context.gpus"));
  }
  v1::CreateStudyRequest create;
  create.set_study_id("b");
  *create.mutable_study() = PlainStudy();
  create.mutable_study()->mutable_parameters(0)->mutable_integer()->set_min(
      std::numeric_limits<int64_t>::min());
  EXPECT_THAT(service_->CreateStudy(create),
              RefusesField("study.parameters[0].integer.min"));
}

// ---- CompleteTrial ----

TEST_P(TuningServiceContractTest, AMeasurementEndsATrialAndMovesTheProgress) {
  Create("a");
  const std::vector<v1::Trial> trials = Suggest("a", 3);
  service_->PassTime(absl::Seconds(5));
  ASSERT_THAT(Complete(trials[0].name(), {{"score", 100}}), IsOk());
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                               Complete(trials[1].name(), {{"score", 125}}));
  v1::Trial expected = trials[1];
  expected.set_state(v1::Trial::SUCCEEDED);
  (*expected.mutable_metrics())["score"] = 125;
  expected.clear_lease_expire_time();
  *expected.mutable_end_time() = done.end_time();
  *expected.mutable_update_time() = done.update_time();
  EXPECT_THAT(done, EqualsProto(expected));
  EXPECT_EQ(done.end_time().seconds(), done.create_time().seconds() + 5);
  EXPECT_THAT(GetTrial(done.name()), EqualsProto(done));
  const v1::StudyProgress progress = GetStudy("a").progress();
  EXPECT_EQ(progress.trials(), 3);
  EXPECT_EQ(progress.active_trials(), 1);
  EXPECT_EQ(progress.succeeded_trials(), 2);
  EXPECT_EQ(progress.baseline_objective(), 100);
  EXPECT_EQ(progress.best_objective(), 125);
  EXPECT_EQ(progress.best_trial(), done.name());
  EXPECT_EQ(progress.speedup(), 1.25);
}

TEST_P(TuningServiceContractTest, ASecondCompletionIsTheSameOrRefused) {
  Create("a");
  const v1::Trial trial = Suggest("a")[0];
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                               Complete(trial.name(), {{"score", 1}}));
  service_->PassTime(absl::Minutes(1));
  EXPECT_THAT(Complete(trial.name(), {{"score", 1}}),
              IsOkAndHolds(EqualsProto(done)));
  EXPECT_THAT(
      Complete(trial.name(), {{"score", 2}}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("SUCCEEDED")));
  EXPECT_THAT(End(trial.name(), v1::Trial::INFEASIBLE, v1::Trial::CRASH),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(done));
}

TEST_P(TuningServiceContractTest, EveryReasonOfAFailureIsKept) {
  Create("a");
  for (const v1::Trial::Reason reason :
       {v1::Trial::OUT_OF_MEMORY, v1::Trial::CRASH, v1::Trial::TIMEOUT,
        v1::Trial::INVALID, v1::Trial::OTHER}) {
    v1::CompleteTrialRequest request;
    request.set_name(Suggest("a")[0].name());
    request.set_state(v1::Trial::INFEASIBLE);
    request.set_reason(reason);
    request.set_reason_detail("exit code 137: \xe2\x80\x9cOOM\xe2\x80\x9d\n");
    CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                                 service_->CompleteTrial(request));
    EXPECT_EQ(done.state(), v1::Trial::INFEASIBLE);
    EXPECT_EQ(done.reason(), reason);
    EXPECT_EQ(done.reason_detail(), request.reason_detail());
    EXPECT_THAT(GetTrial(done.name()), EqualsProto(done));
  }
  EXPECT_EQ(GetStudy("a").progress().infeasible_trials(), 5);
  EXPECT_THAT(ListTrials("a", "reason = CRASH", "", 10), SizeIs(1));
}

TEST_P(TuningServiceContractTest, WhatMeasuredNothingIsInfeasible) {
  Create("a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                               Complete(Suggest("a")[0].name(), {}));
  EXPECT_EQ(done.state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(done.reason(), v1::Trial::NO_MEASUREMENT);
}

TEST_P(TuningServiceContractTest, WhatBreaksAMetricConstraintIsInfeasible) {
  v1::Study study = PlainStudy();
  study.add_metrics()->set_name("memory");
  v1::MetricConstraint& constraint = *study.add_metric_constraints();
  constraint.set_metric("memory");
  constraint.set_max(76);
  Create("a", study);
  const std::vector<v1::Trial> trials = Suggest("a", 2);
  ASSERT_THAT(Complete(trials[0].name(), {{"score", 10}, {"memory", 76}}),
              IsOk());
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial done,
      Complete(trials[1].name(), {{"score", 99}, {"memory", 77}}));
  EXPECT_EQ(done.state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(done.reason(), v1::Trial::METRIC_CONSTRAINT);
  EXPECT_THAT(done.reason_detail(), HasSubstr("memory = 77 is above 76"));
  EXPECT_EQ(done.metrics().at("score"), 99);
  EXPECT_EQ(GetStudy("a").progress().best_trial(), trials[0].name());
}

TEST_P(TuningServiceContractTest, AConstrainedMetricMustBeMeasured) {
  v1::Study study = PlainStudy();
  study.add_metrics()->set_name("memory");
  v1::MetricConstraint& constraint = *study.add_metric_constraints();
  constraint.set_metric("memory");
  constraint.set_max(76);
  Create("a", study);
  const v1::Trial trial = Suggest("a")[0];
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                               Complete(trial.name(), {{"score", 99}}));
  EXPECT_EQ(done.state(), v1::Trial::INFEASIBLE);
  EXPECT_EQ(done.reason(), v1::Trial::NO_MEASUREMENT);
  EXPECT_THAT(done.reason_detail(), HasSubstr("memory"));
  EXPECT_EQ(done.metrics().at("score"), 99);
  EXPECT_THAT(Complete(trial.name(), {{"score", 99}}),
              IsOkAndHolds(EqualsProto(done)));
  // So it is with imports.
  v1::Trial measured = Measured(1, 1, 10);
  (*measured.mutable_metrics())["memory"] = 70;
  ASSERT_EQ(Import("a", {Measured(2, 2, 50), measured}).imported(), 2);
  EXPECT_EQ(GetTrial("studies/a/trials/2").reason(), v1::Trial::NO_MEASUREMENT);
  v1::ListOptimalTrialsRequest request;
  request.set_parent("studies/a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto best,
                               service_->ListOptimalTrials(request));
  EXPECT_THAT(NamesOf({best.trials().begin(), best.trials().end()}),
              ElementsAre("studies/a/trials/3"));
  EXPECT_EQ(GetStudy("a").progress().best_objective(), 10);
}

TEST_P(TuningServiceContractTest, BadCompletionsAreRefusedByField) {
  Create("a");
  const v1::Trial trial = Suggest("a")[0];
  struct Case {
    const char* field;
    std::function<void(v1::CompleteTrialRequest*)> spoil;
  };
  const Case cases[] = {
      {"state", [](auto* r) { r->set_state(v1::Trial::EXPIRED); }},
      {"state", [](auto* r) { r->clear_state(); }},
      {"reason", [](auto* r) { r->set_reason(v1::Trial::CRASH); }},
      {"reason_detail",
       [](auto* r) { r->set_reason_detail(std::string(1025, 'x')); }},
      {"metrics.score",
       [](auto* r) {
         (*r->mutable_metrics())["score"] =
             std::numeric_limits<double>::quiet_NaN();
       }},
      {"metrics.score",
       [](auto* r) {
         (*r->mutable_metrics())["score"] =
             -std::numeric_limits<double>::infinity();
       }},
      {"metrics.speed", [](auto* r) { (*r->mutable_metrics())["speed"] = 1; }},
      {"request_id", [](auto* r) { r->set_request_id("\x01"); }},
  };
  for (const Case& test : cases) {
    v1::CompleteTrialRequest request;
    request.set_name(trial.name());
    request.set_state(v1::Trial::SUCCEEDED);
    (*request.mutable_metrics())["score"] = 1;
    test.spoil(&request);
    EXPECT_THAT(service_->CompleteTrial(request), RefusesField(test.field));
  }
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
}

TEST_P(TuningServiceContractTest, OnlyItsHolderMayChangeATrial) {
  Create("a");
  const v1::Trial trial = Suggest("a", 1, "job")[0];
  for (const std::string thief : {"", "jo", "job "}) {
    EXPECT_THAT(Complete(trial.name(), {{"score", 1}}, thief),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_name(trial.name());
    heartbeat.set_client_id(thief);
    EXPECT_THAT(service_->Heartbeat(heartbeat),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
  EXPECT_THAT(Complete(trial.name(), {{"score", 1}}, "job"), IsOk());
}

TEST_P(TuningServiceContractTest, IllegalTransitionsChangeNothing) {
  Create("a");
  const std::vector<v1::Trial> trials = Suggest("a", 3);
  std::vector<v1::Trial> ended;
  for (const auto& answer :
       {Complete(trials[0].name(), {{"score", 1}}),
        End(trials[1].name(), v1::Trial::INFEASIBLE, v1::Trial::CRASH)}) {
    ASSERT_THAT(answer, IsOk());
    ended.push_back(*answer);
  }
  ASSERT_THAT(Cancel(trials[2].name()), IsOk());
  ASSERT_THAT(Cancel(trials[2].name()), IsOk());
  ended.push_back(GetTrial(trials[2].name()));
  service_->PassTime(absl::Seconds(1));
  for (const v1::Trial& trial : ended) {
    const auto refused = [&](const auto& answer) {
      EXPECT_THAT(answer, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr(trial.name())));
    };
    refused(Complete(trial.name(), {{"score", 2}}));
    refused(End(trial.name(), v1::Trial::ABANDONED, v1::Trial::PREEMPTED));
    if (trial.state() != v1::Trial::CANCELLED) {
      refused(Cancel(trial.name()));
      v1::HeartbeatRequest heartbeat;
      heartbeat.set_name(trial.name());
      refused(service_->Heartbeat(heartbeat));
    }
    EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
  }
}

TEST_P(TuningServiceContractTest, AnAbandonedConfigurationIsHandedOutAgain) {
  Create("a");
  const v1::Trial lost = Suggest("a")[0];
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial done,
      End(lost.name(), v1::Trial::ABANDONED, v1::Trial::PREEMPTED));
  EXPECT_EQ(done.state(), v1::Trial::ABANDONED);
  EXPECT_FALSE(done.late());
  const v1::Trial again = Suggest("a")[0];
  EXPECT_NE(again.name(), lost.name());
  EXPECT_EQ(again.suggestion().source(), v1::Trial::REISSUED);
  EXPECT_EQ(again.attempt(), 2);
  EXPECT_THAT(again.parameters().at("x"),
              EqualsProto(lost.parameters().at("x")));
  EXPECT_THAT(again.parameters().at("y"),
              EqualsProto(lost.parameters().at("y")));
}

// ---- Leases ----

TEST_P(TuningServiceContractTest, AHeartbeatRenewsTheLease) {
  Create("a");
  const v1::Trial trial = Suggest("a")[0];
  service_->PassTime(absl::Minutes(9));
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(trial.name());
  heartbeat.mutable_intermediate()->set_step(7);
  (*heartbeat.mutable_intermediate()->mutable_metrics())["score"] = 0.1;
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::HeartbeatResponse beat,
                               service_->Heartbeat(heartbeat));
  EXPECT_EQ(beat.lease().seconds(), 600);
  EXPECT_FALSE(beat.should_stop());
  service_->PassTime(absl::Minutes(9));
  const v1::Trial renewed = GetTrial(trial.name());
  EXPECT_EQ(renewed.state(), v1::Trial::ACTIVE);
  EXPECT_EQ(renewed.lease_expire_time().seconds(),
            trial.lease_expire_time().seconds() + 540);
  EXPECT_EQ(renewed.intermediate().step(), 7);
  EXPECT_EQ(renewed.intermediate().metrics().at("score"), 0.1);
  EXPECT_TRUE(renewed.intermediate().has_time());
}

TEST_P(TuningServiceContractTest, BadHeartbeatsAreRefusedByField) {
  Create("a");
  const v1::Trial trial = Suggest("a")[0];
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(trial.name());
  heartbeat.mutable_intermediate()->set_step(-1);
  EXPECT_THAT(service_->Heartbeat(heartbeat),
              RefusesField("intermediate.step"));
  heartbeat.mutable_intermediate()->set_step(1);
  (*heartbeat.mutable_intermediate()->mutable_metrics())["speed"] = 1;
  EXPECT_THAT(service_->Heartbeat(heartbeat),
              RefusesField("intermediate.metrics.speed"));
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
}

TEST_P(TuningServiceContractTest, ACancelledTrialStopsAtItsNextHeartbeat) {
  Create("a");
  const v1::Trial trial = Suggest("a")[0];
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(trial.name());
  CUBICML_ASSERT_OK_AND_ASSIGN(v1::Trial cancelled, Cancel(trial.name()));
  EXPECT_EQ(cancelled.state(), v1::Trial::STOPPING);
  CUBICML_ASSERT_OK_AND_ASSIGN(v1::HeartbeatResponse beat,
                               service_->Heartbeat(heartbeat));
  EXPECT_TRUE(beat.should_stop());
  EXPECT_GT(beat.lease().seconds(), 0);
  EXPECT_EQ(GetStudy("a").progress().active_trials(), 1);
  CUBICML_ASSERT_OK_AND_ASSIGN(cancelled, Cancel(trial.name()));
  EXPECT_EQ(cancelled.state(), v1::Trial::CANCELLED);
  EXPECT_THAT(Cancel(trial.name()), IsOkAndHolds(EqualsProto(cancelled)));
  CUBICML_ASSERT_OK_AND_ASSIGN(beat, service_->Heartbeat(heartbeat));
  EXPECT_TRUE(beat.should_stop());
  EXPECT_EQ(beat.lease().seconds(), 0);
  EXPECT_EQ(GetStudy("a").progress().active_trials(), 0);
}

TEST_P(TuningServiceContractTest, AMeasurementAfterTheLeaseIsLateAndCounts) {
  Create("a");
  const v1::Trial trial = Suggest("a", 1, "job")[0];
  service_->PassTime(absl::Minutes(11));
  ASSERT_TRUE(WaitUntil(kPatience, [&] {
    return GetTrial(trial.name()).state() == v1::Trial::EXPIRED;
  }));
  EXPECT_FALSE(GetTrial(trial.name()).has_lease_expire_time());
  const v1::Trial again = Suggest("a", 1, "other")[0];
  EXPECT_EQ(again.suggestion().source(), v1::Trial::REISSUED);
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial done,
                               Complete(trial.name(), {{"score", 3}}, "job"));
  EXPECT_EQ(done.state(), v1::Trial::SUCCEEDED);
  EXPECT_TRUE(done.late());
  EXPECT_THAT(NamesOf(ListTrials("a", "late = true", "", 10)),
              ElementsAre(trial.name()));
  EXPECT_EQ(GetStudy("a").progress().best_objective(), 3);
}

// ---- request_id ----

TEST_P(TuningServiceContractTest, ARequestIdCreatesAStudyOnce) {
  v1::CreateStudyRequest request;
  request.set_study_id("a");
  *request.mutable_study() = PlainStudy();
  request.set_request_id("r1");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study first,
                               service_->CreateStudy(request));
  ASSERT_THAT(Delete("a"), IsOk());
  EXPECT_THAT(service_->CreateStudy(request), IsOkAndHolds(EqualsProto(first)));
  EXPECT_THAT(ListStudyIds("", "", 10), IsEmpty());
}

TEST_P(TuningServiceContractTest, ARequestIdUpdatesAStudyOnce) {
  Create("a");
  v1::UpdateStudyRequest request;
  request.mutable_study()->set_name("studies/a");
  request.mutable_study()->set_display_name("first");
  request.mutable_update_mask()->add_paths("display_name");
  request.set_request_id("r1");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study first,
                               service_->UpdateStudy(request));
  v1::UpdateStudyRequest other = request;
  other.mutable_study()->set_display_name("second");
  other.set_request_id("r2");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study second,
                               service_->UpdateStudy(other));
  EXPECT_THAT(service_->UpdateStudy(request), IsOkAndHolds(EqualsProto(first)));
  EXPECT_THAT(GetStudy("a"), EqualsProto(second));
}

TEST_P(TuningServiceContractTest, ARequestIdDeletesOneStudyOnly) {
  Create("a");
  ASSERT_THAT(Delete("a", false, "r1"), IsOk());
  const v1::Study next = Create("a");
  EXPECT_THAT(Delete("a", false, "r1"), IsOk());
  EXPECT_THAT(GetStudy("a"), EqualsProto(next));
}

TEST_P(TuningServiceContractTest, ARequestIdSuggestsOnce) {
  Create("a");
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  request.set_count(2);
  request.set_request_id("r1");
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto first,
                               service_->SuggestTrials(request));
  ASSERT_EQ(first.trials_size(), 2);
  // The trials as they are now.
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial done, Complete(first.trials(1).name(), {{"score", 1}}));
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto second,
                               service_->SuggestTrials(request));
  ASSERT_EQ(second.trials_size(), 2);
  EXPECT_THAT(second.trials(0), EqualsProto(first.trials(0)));
  EXPECT_THAT(second.trials(1), EqualsProto(done));
  EXPECT_THAT(Export("a"), SizeIs(2));
}

TEST_P(TuningServiceContractTest, ARequestIdEndsATrialOnce) {
  Create("a");
  const std::vector<v1::Trial> trials = Suggest("a", 2);
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial done,
      Complete(trials[0].name(), {{"score", 1}}, "", "c"));
  service_->PassTime(absl::Seconds(1));
  EXPECT_THAT(Complete(trials[0].name(), {{"score", 1}}, "", "c"),
              IsOkAndHolds(EqualsProto(done)));
  // The second cancellation of a trial would end it.
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial stopping,
                               Cancel(trials[1].name(), "x"));
  EXPECT_EQ(stopping.state(), v1::Trial::STOPPING);
  EXPECT_THAT(Cancel(trials[1].name(), "x"),
              IsOkAndHolds(EqualsProto(stopping)));
  EXPECT_THAT(GetTrial(trials[1].name()), EqualsProto(stopping));
}

TEST_P(TuningServiceContractTest, ARequestIdOfAnotherCallIsRefused) {
  v1::CreateStudyRequest create;
  create.set_study_id("a");
  *create.mutable_study() = PlainStudy();
  create.set_request_id("r1");
  ASSERT_THAT(service_->CreateStudy(create), IsOk());
  create.set_study_id("b");
  EXPECT_THAT(service_->CreateStudy(create), RefusesField("request_id"));
  v1::SuggestTrialsRequest suggest;
  suggest.set_parent("studies/a");
  suggest.set_request_id("r1");
  EXPECT_THAT(service_->SuggestTrials(suggest), RefusesField("request_id"));
  const v1::Trial trial = Suggest("a")[0];
  EXPECT_THAT(Complete(trial.name(), {{"score", 1}}, "", "r1"),
              RefusesField("request_id"));
  EXPECT_THAT(Cancel(trial.name(), "r1"), RefusesField("request_id"));
  EXPECT_THAT(Delete("a", true, "r1"), RefusesField("request_id"));
  EXPECT_THAT(ListStudyIds("", "", 10), ElementsAre("a"));
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
}

TEST_P(TuningServiceContractTest, ACallThatFailedIsNotRemembered) {
  Create("a");
  const v1::Trial trial = Suggest("a", 1, "job")[0];
  EXPECT_THAT(Complete(trial.name(), {{"score", 1}}, "thief", "r1"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Complete(trial.name(), {{"score", 1}}, "job", "r1"), IsOk());
}

// ---- ImportTrials ----

TEST_P(TuningServiceContractTest, RefusedImportsAreToldAndTheOthersKept) {
  Create("a");
  std::vector<v1::Trial> trials = {Measured(1, 1, 10), Measured(16, 1, 10),
                                   Measured(2, 1, 20), Measured(3, 1, 30)};
  (*trials[3].mutable_metrics())["speed"] = 1;
  trials.push_back(Measured(4, 1, 40));
  trials[4].set_state(v1::Trial::ACTIVE);
  trials.push_back(Measured(5, 1, 50));
  trials[5].set_state(v1::Trial::INFEASIBLE);
  const v1::ImportTrialsResponse response = Import("a", trials);
  EXPECT_EQ(response.imported(), 3);
  EXPECT_EQ(response.refused(), 3);
  ASSERT_EQ(response.refusals_size(), 3);
  EXPECT_EQ(response.refusals(0).index(), 1);
  EXPECT_THAT(response.refusals(0).message(), HasSubstr("parameters.x"));
  EXPECT_EQ(response.refusals(1).index(), 3);
  EXPECT_THAT(response.refusals(1).message(), HasSubstr("metrics.speed"));
  EXPECT_EQ(response.refusals(2).index(), 4);
  EXPECT_THAT(response.refusals(2).message(), HasSubstr("state"));
  EXPECT_THAT(Export("a"), SizeIs(3));
  const v1::StudyProgress progress = GetStudy("a").progress();
  EXPECT_EQ(progress.succeeded_trials(), 2);
  EXPECT_EQ(progress.infeasible_trials(), 1);
  EXPECT_EQ(progress.best_objective(), 20);
}

TEST_P(TuningServiceContractTest, ManyImportsKeepTheirOrder) {
  v1::Study study = PlainStudy();
  study.mutable_parameters(0)->mutable_integer()->set_max(1000);
  Create("a", study);
  constexpr int kTrials = 1100;  // more than one message, batch and page
  std::vector<v1::Trial> trials;
  trials.reserve(kTrials);
  for (int i = 0; i < kTrials; ++i) {
    trials.push_back(Measured(i % 1000, i / 1000, i));
  }
  trials[700].clear_metrics();
  const v1::ImportTrialsResponse response = Import("a", trials);
  EXPECT_EQ(response.imported(), kTrials - 1);
  ASSERT_EQ(response.refusals_size(), 1);
  EXPECT_EQ(response.refusals(0).index(), 700);
  std::vector<v1::Trial> exported = Export("a");
  std::vector<v1::Trial> listed = ListTrials("a", "", "", 1000);
  ASSERT_THAT(exported, SizeIs(kTrials - 1));
  ASSERT_THAT(listed, SizeIs(kTrials - 1));
  for (size_t i = 0; i < exported.size(); ++i) {
    const double score = static_cast<double>(i < 700 ? i : i + 1);
    ASSERT_EQ(exported[i].metrics().at("score"), score);
    ASSERT_THAT(listed[i], EqualsProto(exported[i]));
  }
}

}  // namespace
}  // namespace cubicml
