// SPDX-License-Identifier: Apache-2.0
//
// Bad input of every kind gets the right code and a message that names the
// field, changes nothing, and stops nothing.

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/e2e_test.h"
#include "tests/support/raw_call.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BadInputTest : public E2eTest {
 protected:
  // A study with one trial that is held and one that is measured.
  void SetUp() override {
    StartServer();
    ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
    v1::SuggestTrialsResponse suggested;
    ASSERT_TRUE(Suggest("studies/ads", "done", 1, &suggested).ok());
    done_ = suggested.trials(0);
    ASSERT_TRUE(Complete(done_, 100).ok());
    ASSERT_TRUE(Suggest("studies/ads", "held", 1, &suggested).ok());
    held_ = suggested.trials(0);
    before_ = Snapshot();
  }

  // Whatever happened, it changed nothing and the server serves.
  void TearDown() override {
    if (HasFatalFailure()) return;
    EXPECT_EQ(Snapshot(), before_);
    v1::SuggestTrialsResponse suggested;
    EXPECT_TRUE(Suggest("studies/ads", "next", 1, &suggested).ok());
    EXPECT_EQ(suggested.trials_size(), 1);
  }

  std::string Snapshot() {
    std::string text;
    v1::ListStudiesResponse studies;
    EXPECT_TRUE(
        Call(&TuningStub::ListStudies, v1::ListStudiesRequest(), &studies)
            .ok());
    for (v1::Study& study : *studies.mutable_studies()) {
      study.clear_progress();  // a list tells what is known without loading
      absl::StrAppend(&text, study.ShortDebugString(), "\n");
    }
    v1::StudyProgress progress = GetStudy("studies/ads").progress();
    progress.clear_surrogate();
    absl::StrAppend(&text, progress.ShortDebugString(), "\n");
    for (const v1::Trial& trial : Export("studies/ads")) {
      absl::StrAppend(&text, trial.ShortDebugString(), "\n");
    }
    return text;
  }

  static void ExpectField(const grpc::Status& status,
                          const std::string& field) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << status.error_message();
    EXPECT_EQ(FieldOf(status), field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(field));
  }

  // CreateStudy of KnobsStudy() with one thing wrong.
  void ExpectStudyRefused(const std::string& field,
                          const std::function<void(v1::Study*)>& spoil) {
    v1::Study study = KnobsStudy();
    spoil(&study);
    SCOPED_TRACE(field);
    ExpectField(CreateStudy("bad", study), field);
  }

  // CompleteTrial of the held trial with one thing wrong.
  grpc::Status CompleteHeld(
      const std::function<void(v1::CompleteTrialRequest*)>& spoil) {
    v1::CompleteTrialRequest request;
    request.set_name(held_.name());
    request.set_client_id("held");
    request.set_state(v1::Trial::SUCCEEDED);
    (*request.mutable_metrics())["qps"] = 100;
    spoil(&request);
    v1::Trial trial;
    return Call(&TuningStub::CompleteTrial, request, &trial);
  }

  // SuggestTrials with one thing wrong.
  grpc::Status SuggestBadly(
      const std::function<void(v1::SuggestTrialsRequest*)>& spoil) {
    v1::SuggestTrialsRequest request;
    request.set_parent("studies/ads");
    request.set_client_id("x");
    spoil(&request);
    v1::SuggestTrialsResponse response;
    return Call(&TuningStub::SuggestTrials, request, &response);
  }

  v1::Trial done_;
  v1::Trial held_;
  std::string before_;
};

TEST_F(BadInputTest, WhatDoesNotExistIsNotFoundByName) {
  const auto expect = [](const grpc::Status& status, const std::string& name) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_THAT(status.error_message(), HasSubstr(name));
  };
  const std::string name = "studies/none";
  v1::GetStudyRequest get;
  get.set_name(name);
  v1::Study study;
  expect(Call(&TuningStub::GetStudy, get, &study), name);
  expect(SuggestBadly([&](auto* r) { r->set_parent(name); }), name);
  v1::GetTrialRequest get_trial;
  v1::Trial trial;
  for (const char* no_trial : {"studies/ads/trials/999"}) {
    get_trial.set_name(no_trial);
    expect(Call(&TuningStub::GetTrial, get_trial, &trial), no_trial);
    expect(CompleteHeld([&](auto* r) { r->set_name(no_trial); }), no_trial);
  }
  v1::ListTrialsRequest list;
  list.set_parent(name);
  v1::ListTrialsResponse page;
  expect(Call(&TuningStub::ListTrials, list, &page), name);
  v1::PredictRequest predict;
  predict.set_parent(name);
  *predict.add_configurations()->mutable_parameters() =
      MeasuredTrial(1, 1).parameters();
  v1::PredictResponse predicted;
  expect(Call(&TuningStub::Predict, predict, &predicted), name);
  v1::ImportTrialsResponse imported;
  expect(Import(name, {MeasuredTrial(1, 1)}, &imported), name);
}

TEST_F(BadInputTest, NamesThatAreNoNamesAreRefused) {
  const std::vector<std::string> names = {
      "",
      "ads",
      "studies/",
      "studies/Ads",
      "studies/ads/",
      "studies/a b",
      "studies/" + std::string(64, 'a'),
      "studies/" + std::string(100000, 'a')};
  for (const std::string& name : names) {
    v1::GetStudyRequest get;
    get.set_name(name);
    v1::Study study;
    ExpectField(Call(&TuningStub::GetStudy, get, &study), "name");
    ExpectField(SuggestBadly([&](auto* r) { r->set_parent(name); }), "parent");
  }
  for (const char* name :
       {"", "studies/ads", "studies/ads/trials/", "studies/ads/trials/x",
        "studies/ads/trials/-1", "studies/ads/trials/0",
        "studies/ads/trials/1/2", "studies/ads/trials/99999999999999999999"}) {
    ExpectField(CompleteHeld([&](auto* r) { r->set_name(name); }), "name");
  }
}

TEST_F(BadInputTest, StudiesThatMakeNoSenseAreRefusedWithTheField) {
  ExpectStudyRefused("study.parameters[0].name", [](v1::Study* s) {
    s->mutable_parameters(0)->set_name(std::string(65, 'x'));
  });
  ExpectStudyRefused("study.parameters[0].name", [](v1::Study* s) {
    s->mutable_parameters(0)->set_name("1tp");
  });
  ExpectStudyRefused("study.parameters[2].integer.max", [](v1::Study* s) {
    s->mutable_parameters(2)->mutable_integer()->set_max(1);  // reversed
  });
  ExpectStudyRefused("study.parameters[3].number.max", [](v1::Study* s) {
    s->mutable_parameters(3)->mutable_number()->set_max(1e-5);
  });
  ExpectStudyRefused("study.parameters[3].number.min", [](v1::Study* s) {
    s->mutable_parameters(3)->mutable_number()->set_min(kNaN);
  });
  ExpectStudyRefused("study.parameters[3].number.max", [](v1::Study* s) {
    s->mutable_parameters(3)->mutable_number()->set_max(kInfinity);
  });
  // A constraint that cannot be parsed, that names nothing, that is no
  // condition, and what SQLite could do but must not.
  for (const char* expression :
       {"tp * (", "tp = none", "SELECT 1", "tp = 1; DROP TABLE studies",
        "load_extension('x')", "tp = (SELECT count(*) FROM sqlite_master)",
        "\"tp"}) {
    ExpectStudyRefused("study.constraints[0].expression",
                       [expression](v1::Study* s) {
                         s->mutable_constraints(0)->set_expression(expression);
                       });
  }
  ExpectStudyRefused("study.objectives",
                     [](v1::Study* s) { s->clear_objectives(); });
  ExpectStudyRefused("study.display_name", [](v1::Study* s) {
    s->set_display_name(std::string(201, 'x'));
  });
}

TEST_F(BadInputTest, ALogRangeWithZeroIsRefused) {
  v1::Study study = KnobsStudy();
  study.mutable_parameters(3)->mutable_number()->set_min(0);
  const grpc::Status status = CreateStudy("bad", study);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(FieldOf(status), HasSubstr("study.parameters[3].number"));
}

TEST_F(BadInputTest, AStudyThatNothingSatisfiesIsRefused) {
  v1::Study study = KnobsStudy();
  study.add_constraints()->set_expression("tp > 100");
  const grpc::Status status = CreateStudy("bad", study);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(FieldOf(status), HasSubstr("study.constraints"));
}

TEST_F(BadInputTest, OverlongIdsAreRefused) {
  ExpectField(CreateStudy(std::string(64, 'a'), KnobsStudy()), "study_id");
  ExpectField(CreateStudy("Not-Lower", KnobsStudy()), "study_id");
  ExpectField(
      SuggestBadly([](auto* r) { r->set_client_id(std::string(129, 'c')); }),
      "client_id");
  ExpectField(
      SuggestBadly([](auto* r) { r->set_request_id(std::string(65, 'r')); }),
      "request_id");
  ExpectField(SuggestBadly([](auto* r) { r->set_request_id("new\nline"); }),
              "request_id");
}

TEST_F(BadInputTest, ANameThatIsTakenByAnotherDefinitionIsRefused) {
  v1::Study study = KnobsStudy();
  EXPECT_TRUE(CreateStudy("ads", study).ok());  // the same: no error
  study.mutable_parameters(2)->mutable_integer()->set_max(64);
  const grpc::Status status = CreateStudy("ads", study);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(status.error_message(), HasSubstr("studies/ads"));
}

TEST_F(BadInputTest, MetricsThatAreNoMeasurementsAreRefused) {
  for (const double value : {kNaN, kInfinity, -kInfinity}) {
    ExpectField(CompleteHeld([value](auto* r) {
                  (*r->mutable_metrics())["qps"] = value;
                }),
                "metrics.qps");
  }
  ExpectField(
      CompleteHeld([](auto* r) { (*r->mutable_metrics())["unknown"] = 1; }),
      "metrics.unknown");
  ExpectField(CompleteHeld([](auto* r) { r->set_state(v1::Trial::ACTIVE); }),
              "state");
  ExpectField(CompleteHeld([](auto* r) {
                r->set_state(static_cast<v1::Trial::State>(77));
              }),
              "state");
  ExpectField(CompleteHeld([](auto* r) {
                r->set_reason_detail(std::string(1025, 'x'));
              }),
              "reason_detail");
  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(held_.name());
  heartbeat.set_client_id("held");
  (*heartbeat.mutable_intermediate()->mutable_metrics())["qps"] = kNaN;
  v1::HeartbeatResponse beat;
  ExpectField(Call(&TuningStub::Heartbeat, heartbeat, &beat),
              "intermediate.metrics.qps");
}

TEST_F(BadInputTest, ASecondDifferentCompletionIsRefused) {
  v1::CompleteTrialRequest request;
  request.set_name(done_.name());
  request.set_client_id("done");
  request.set_state(v1::Trial::SUCCEEDED);
  (*request.mutable_metrics())["qps"] = 101;
  v1::Trial trial;
  const grpc::Status status = Call(&TuningStub::CompleteTrial, request, &trial);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("SUCCEEDED"));
}

TEST_F(BadInputTest, SomebodyElsesTrialCannotBeCompleted) {
  const grpc::Status status =
      CompleteHeld([](auto* r) { r->set_client_id("thief"); });
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("client_id"));
}

TEST_F(BadInputTest, ValuesOutsideTheSpaceAreRefused) {
  const auto refuse = [this](const std::string& name, const v1::Value& value) {
    SCOPED_TRACE(name);
    ExpectField(SuggestBadly([&](auto* r) {
                  (*r->mutable_fixed_parameters())[name] = value;
                }),
                "fixed_parameters." + name);
  };
  refuse("batch", IntegerValue(33));      // not on its grid
  refuse("batch", IntegerValue(64000));   // out of range
  refuse("batch", StringValue("64"));     // wrong type
  refuse("tp", IntegerValue(3));          // not in the list
  refuse("kernel", StringValue("none"));  // not a category
  refuse("lr", NumberValue(kNaN));
  refuse("lr", NumberValue(kInfinity));
  refuse("lr", NumberValue(1.0));
  refuse("unknown", IntegerValue(1));
  refuse("tp", v1::Value());
  ExpectField(SuggestBadly([](auto* r) {
                (*r->mutable_context())["gpus"] = StringValue("eight");
              }),
              "context.gpus");
  ExpectField(SuggestBadly([](auto* r) {
                (*r->mutable_context())["unknown"] = IntegerValue(1);
              }),
              "context.unknown");
  ExpectField(SuggestBadly([](auto* r) { r->set_count(101); }), "count");
  ExpectField(SuggestBadly([](auto* r) { r->set_count(-1); }), "count");
}

TEST_F(BadInputTest, ImportedTrialsOutsideTheSpaceAreCountedAndTold) {
  std::vector<v1::Trial> trials(7, MeasuredTrial(5, 100));
  (*trials[0].mutable_parameters())["batch"] = IntegerValue(33);
  (*trials[1].mutable_parameters())["unknown"] = IntegerValue(1);
  (*trials[2].mutable_metrics())["qps"] = kNaN;
  (*trials[3].mutable_parameters())["pp"] = IntegerValue(2);  // breaks vpp
  trials[4].set_state(v1::Trial::ACTIVE);
  (*trials[5].mutable_parameters())["tp"] = IntegerValue(8);
  (*trials[5].mutable_context())["gpus"] = IntegerValue(4);  // constraint
  trials[6]
      .mutable_parameters()
      ->at("sharding")
      .mutable_list_value()
      ->mutable_values()
      ->RemoveLast();
  v1::ImportTrialsResponse imported;
  EXPECT_TRUE(Import("studies/ads", trials, &imported).ok());
  EXPECT_EQ(imported.imported(), 0) << imported.ShortDebugString();
  EXPECT_EQ(imported.refused(), 7);
  const char* named[] = {"batch", "unknown", "qps",     "vpp",
                         "state", "tp",      "sharding"};
  for (int i = 0; i < imported.refusals_size(); ++i) {
    EXPECT_THAT(imported.refusals(i).message(), HasSubstr(named[i]));
  }
}

TEST_F(BadInputTest, FiltersTokensAndMasksAreChecked) {
  v1::ListTrialsRequest list;
  list.set_parent("studies/ads");
  v1::ListTrialsResponse page;
  list.set_filter("state = ");
  ExpectField(Call(&TuningStub::ListTrials, list, &page), "filter");
  list.set_filter("1=1; DROP TABLE trials");
  ExpectField(Call(&TuningStub::ListTrials, list, &page), "filter");
  list.clear_filter();
  list.set_page_token("not-a-token");
  ExpectField(Call(&TuningStub::ListTrials, list, &page), "page_token");
  list.clear_page_token();
  list.set_order_by("password");
  ExpectField(Call(&TuningStub::ListTrials, list, &page), "order_by");
  list.clear_order_by();
  list.set_page_size(-1);
  ExpectField(Call(&TuningStub::ListTrials, list, &page), "page_size");
  v1::UpdateStudyRequest update;
  update.mutable_study()->set_name("studies/ads");
  update.mutable_update_mask()->add_paths("objectives");
  v1::Study study;
  ExpectField(Call(&TuningStub::UpdateStudy, update, &study), "update_mask");
}

TEST_F(BadInputTest, ATenMegabyteMessageIsRefused) {
  v1::Study study = KnobsStudy();
  study.set_display_name(std::string(10 << 20, 'x'));
  EXPECT_EQ(CreateStudy("bad", study).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(BadInputTest, InvalidUtf8IsRefusedWithTheField) {
  v1::CreateStudyRequest request;
  request.set_study_id("bad");
  *request.mutable_study() = KnobsStudy();
  request.mutable_study()->set_display_name("@@");
  std::string bytes = request.SerializeAsString();
  bytes.replace(bytes.find("@@"), 2, "\xC3\x28");
  ExpectField(CallRaw(server_->NewChannel(),
                      "/cubicml.v1.TuningService/CreateStudy", bytes, nullptr),
              "study.display_name");
  const grpc::Status garbage =
      CallRaw(server_->NewChannel(), "/cubicml.v1.TuningService/SuggestTrials",
              "\xFF\xFF\xFF\xFF", nullptr);
  EXPECT_EQ(garbage.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cubicml
