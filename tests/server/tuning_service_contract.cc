// SPDX-License-Identifier: Apache-2.0
//
// What the suite's files share, and the calls about studies.

#include "tests/server/tuning_service_contract.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/proto_matchers.h"

namespace cubicml {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Study TuningServiceContractTest::Create(const std::string& id) {
  return Create(id, PlainStudy());
}

v1::Study TuningServiceContractTest::Create(const std::string& id,
                                            const v1::Study& study) {
  v1::CreateStudyRequest request;
  request.set_study_id(id);
  *request.mutable_study() = study;
  const absl::StatusOr<v1::Study> created = service_->CreateStudy(request);
  EXPECT_THAT(created, IsOk());
  return created.value_or(v1::Study());
}

v1::Study TuningServiceContractTest::GetStudy(const std::string& id) {
  v1::GetStudyRequest request;
  request.set_name(absl::StrCat("studies/", id));
  const absl::StatusOr<v1::Study> study = service_->GetStudy(request);
  EXPECT_THAT(study, IsOk());
  return study.value_or(v1::Study());
}

std::vector<v1::Trial> TuningServiceContractTest::Suggest(
    const std::string& id, int count, const std::string& client_id) {
  v1::SuggestTrialsRequest request;
  request.set_parent(absl::StrCat("studies/", id));
  request.set_count(count);
  request.set_client_id(client_id);
  const auto response = service_->SuggestTrials(request);
  EXPECT_THAT(response, IsOk());
  std::vector<v1::Trial> trials;
  if (response.ok()) {
    EXPECT_EQ(response->trials_size(), count) << response->ShortDebugString();
    trials.assign(response->trials().begin(), response->trials().end());
  }
  trials.resize(static_cast<size_t>(count));
  return trials;
}

v1::Trial TuningServiceContractTest::GetTrial(const std::string& name) {
  v1::GetTrialRequest request;
  request.set_name(name);
  const absl::StatusOr<v1::Trial> trial = service_->GetTrial(request);
  EXPECT_THAT(trial, IsOk());
  return trial.value_or(v1::Trial());
}

std::vector<v1::Trial> TuningServiceContractTest::Export(
    const std::string& id, const std::string& filter) {
  v1::ExportTrialsRequest request;
  request.set_parent(absl::StrCat("studies/", id));
  request.set_filter(filter);
  const auto trials = service_->ExportTrials(request);
  EXPECT_THAT(trials, IsOk());
  return trials.value_or(std::vector<v1::Trial>());
}

std::vector<std::string> TuningServiceContractTest::ListStudyIds(
    const std::string& filter, const std::string& order_by, int page_size) {
  std::vector<std::string> ids;
  v1::ListStudiesRequest request;
  request.set_filter(filter);
  request.set_order_by(order_by);
  request.set_page_size(page_size);
  do {
    const auto page = service_->ListStudies(request);
    EXPECT_THAT(page, IsOk());
    if (!page.ok()) return {};
    EXPECT_LE(page->studies_size(), page_size);
    for (const v1::Study& study : page->studies()) {
      ids.emplace_back(absl::StripPrefix(study.name(), "studies/"));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return ids;
}

std::vector<v1::Trial> TuningServiceContractTest::ListTrials(
    const std::string& id, const std::string& filter,
    const std::string& order_by, int page_size) {
  std::vector<v1::Trial> trials;
  v1::ListTrialsRequest request;
  request.set_parent(absl::StrCat("studies/", id));
  request.set_filter(filter);
  request.set_order_by(order_by);
  request.set_page_size(page_size);
  do {
    const auto page = service_->ListTrials(request);
    EXPECT_THAT(page, IsOk());
    if (!page.ok()) return {};
    EXPECT_LE(page->trials_size(), page_size);
    trials.insert(trials.end(), page->trials().begin(), page->trials().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return trials;
}

v1::ImportTrialsResponse TuningServiceContractTest::Import(
    const std::string& id, const std::vector<v1::Trial>& trials) {
  const auto response =
      service_->ImportTrials(absl::StrCat("studies/", id), trials);
  EXPECT_THAT(response, IsOk());
  return response.value_or(v1::ImportTrialsResponse());
}

std::vector<v1::Trial> TuningServiceContractTest::CreateMixed(
    const std::string& id) {
  Create(id);
  int64_t x = 0;
  for (const double score : {5.0, -1.0, 5.0, 2.5, -1e300, 5.0}) {
    v1::Trial trial = Measured(x, 3, score);
    trial.mutable_end_time()->set_seconds(1'600'000'000 - x / 2);
    EXPECT_EQ(Import(id, {trial}).imported(), 1);
    if (x % 2 == 0) service_->PassTime(absl::Seconds(1));
    ++x;
  }
  v1::Trial failed = Measured(9, 9, 7);
  failed.set_state(v1::Trial::INFEASIBLE);
  failed.set_reason(v1::Trial::OUT_OF_MEMORY);
  EXPECT_EQ(Import(id, {failed}).imported(), 1);
  Suggest(id, 2, "job");
  service_->PassTime(absl::Seconds(1));
  const std::vector<v1::Trial> more = Suggest(id, 3);
  if (more.size() == 3) {
    EXPECT_THAT(End(more[0].name(), v1::Trial::INFEASIBLE, v1::Trial::CRASH),
                IsOk());
    EXPECT_THAT(Complete(more[1].name(), {{"score", 2.5}}), IsOk());
  }
  std::vector<v1::Trial> all = Export(id);
  EXPECT_THAT(all, SizeIs(12));
  return all;
}

absl::StatusOr<v1::Trial> TuningServiceContractTest::Complete(
    const std::string& name, const std::map<std::string, double>& metrics,
    const std::string& client_id, const std::string& request_id) {
  v1::CompleteTrialRequest request;
  request.set_name(name);
  request.set_client_id(client_id);
  request.set_request_id(request_id);
  request.set_state(v1::Trial::SUCCEEDED);
  request.mutable_metrics()->insert(metrics.begin(), metrics.end());
  return service_->CompleteTrial(request);
}

absl::StatusOr<v1::Trial> TuningServiceContractTest::End(
    const std::string& name, v1::Trial::State state, v1::Trial::Reason reason) {
  v1::CompleteTrialRequest request;
  request.set_name(name);
  request.set_state(state);
  request.set_reason(reason);
  return service_->CompleteTrial(request);
}

absl::StatusOr<v1::Trial> TuningServiceContractTest::Cancel(
    const std::string& name, const std::string& request_id) {
  v1::CancelTrialRequest request;
  request.set_name(name);
  request.set_request_id(request_id);
  return service_->CancelTrial(request);
}

absl::Status TuningServiceContractTest::Delete(const std::string& id,
                                               bool force,
                                               const std::string& request_id) {
  v1::DeleteStudyRequest request;
  request.set_name(absl::StrCat("studies/", id));
  request.set_force(force);
  request.set_request_id(request_id);
  return service_->DeleteStudy(request);
}

v1::Trial TuningServiceContractTest::Measured(int64_t x, int64_t y,
                                              double score) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  (*trial.mutable_parameters())["x"] = IntegerValue(x);
  (*trial.mutable_parameters())["y"] = IntegerValue(y);
  (*trial.mutable_metrics())["score"] = score;
  return trial;
}

v1::Study TypedStudy() {
  return ParseStudy(R"pb(
    parameters {
      name: "wide"
      integer { values: -9007199254740992 values: 0 values: 9007199254740992 }
    }
    parameters {
      name: "exact"
      category {
        values { double_value: 0.1 }
        values { double_value: 4.9406564584124654e-324 }
        values { double_value: -1.7976931348623157e308 }
      }
    }
    parameters {
      name: "text"
      category {
        values { string_value: "Gr\303\266\303\237e \346\227\245\346\234\254" }
        values { string_value: "\"quoted\\\n'; DROP TABLE trials" }
        values { string_value: "" }
      }
    }
    parameters {
      name: "flag"
      category {
        values { bool_value: false }
        values { bool_value: true }
      }
    }
    parameters {
      name: "layers"
      repeat: 2
      integer { max: 3 }
    }
    context { name: "gpus" type: INTEGER }
    context { name: "rate" type: NUMBER }
    context { name: "cluster" type: STRING optional: true }
    context { name: "spot" type: BOOLEAN }
    objectives {
      metric { name: "score" unit: "\302\265s" }
      goal: MINIMIZE
    }
    metrics { name: "memory" }
    settings { seed: 5 }
  )pb");
}

std::vector<std::string> NamesOf(const std::vector<v1::Trial>& trials) {
  std::vector<std::string> names;
  for (const v1::Trial& trial : trials) names.push_back(trial.name());
  return names;
}

namespace {

// Without what only the service sets.
v1::Study Definition(v1::Study study) {
  study.clear_name();
  study.clear_etag();
  study.clear_create_time();
  study.clear_update_time();
  study.clear_progress();
  return study;
}

TEST_P(TuningServiceContractTest, ACreatedStudyIsReadAndListedAsItWasGiven) {
  for (const v1::Study& given : {PlainStudy(), TrainingStudy(), TypedStudy()}) {
    const std::string id = absl::StrCat("s", given.parameters_size());
    const v1::Study created = Create(id, given);
    EXPECT_EQ(created.name(), absl::StrCat("studies/", id));
    EXPECT_FALSE(created.etag().empty());
    EXPECT_TRUE(created.has_create_time());
    EXPECT_THAT(Definition(created), EqualsProto(given));
    EXPECT_THAT(GetStudy(id), EqualsProto(created));
    v1::ListStudiesRequest list;
    list.set_filter(absl::StrCat("name = \"", created.name(), "\""));
    CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListStudies(list));
    ASSERT_EQ(page.studies_size(), 1);
    EXPECT_THAT(page.studies(0), EqualsProto(created));
  }
}

TEST_P(TuningServiceContractTest, TheSameDefinitionAgainIsTheSameStudy) {
  const v1::Study created = Create("a");
  service_->PassTime(absl::Seconds(1));
  EXPECT_THAT(Create("a"), EqualsProto(created));
}

TEST_P(TuningServiceContractTest, ATakenNameIsAlreadyExistsAndNamesTheStudy) {
  const v1::Study created = Create("a");
  v1::CreateStudyRequest request;
  request.set_study_id("a");
  *request.mutable_study() = TrainingStudy();
  EXPECT_THAT(
      service_->CreateStudy(request),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("studies/a")));
  EXPECT_THAT(GetStudy("a"), EqualsProto(created));
}

TEST_P(TuningServiceContractTest, WhatIsOnlyCheckedIsNotStored) {
  v1::CreateStudyRequest request;
  request.set_study_id("a");
  *request.mutable_study() = PlainStudy();
  request.set_validate_only(true);
  EXPECT_THAT(service_->CreateStudy(request), IsOk());
  EXPECT_THAT(ListStudyIds("", "", 10), IsEmpty());
}

TEST_P(TuningServiceContractTest, BadStudiesAreRefusedByFieldAndNotStored) {
  struct Case {
    const char* field;
    std::function<void(v1::CreateStudyRequest*)> spoil;
  };
  const Case cases[] = {
      {"study_id", [](auto* r) { r->set_study_id("Upper"); }},
      {"study_id", [](auto* r) { r->clear_study_id(); }},
      {"request_id", [](auto* r) { r->set_request_id("caf\xc3\xa9"); }},
      {"study.name",
       [](auto* r) { r->mutable_study()->set_name("studies/b"); }},
      {"study.display_name",
       [](auto* r) {
         r->mutable_study()->set_display_name(std::string(201, 'x'));
       }},
      {"study.parameters[1].name",
       [](auto* r) {
         r->mutable_study()->mutable_parameters(1)->set_name("x");
       }},
      {"study.parameters[0].integer.max",
       [](auto* r) {
         r->mutable_study()->mutable_parameters(0)->mutable_integer()->set_max(
             -1);
       }},
      {"study.constraints[0].expression",
       [](auto* r) {
         r->mutable_study()->add_constraints()->set_expression("x +");
       }},
      {"study.objectives",
       [](auto* r) { r->mutable_study()->clear_objectives(); }},
      {"study.metric_constraints[0].metric",
       [](auto* r) {
         auto* constraint = r->mutable_study()->add_metric_constraints();
         constraint->set_metric("none");
         constraint->set_max(1);
       }},
  };
  for (const Case& test : cases) {
    v1::CreateStudyRequest request;
    request.set_study_id("a");
    *request.mutable_study() = PlainStudy();
    test.spoil(&request);
    EXPECT_THAT(service_->CreateStudy(request), RefusesField(test.field));
  }
  EXPECT_THAT(ListStudyIds("", "", 10), IsEmpty());
}

TEST_P(TuningServiceContractTest, UnknownStudiesAreNotFoundByEveryCall) {
  Create("a");
  const auto refused = [](const auto& answer) {
    EXPECT_THAT(answer, StatusIs(absl::StatusCode::kNotFound,
                                 HasSubstr("studies/none")));
  };
  const std::string study = "studies/none";
  v1::GetStudyRequest get;
  get.set_name(study);
  refused(service_->GetStudy(get));
  v1::UpdateStudyRequest update;
  update.mutable_study()->set_name(study);
  update.mutable_update_mask()->add_paths("labels");
  refused(service_->UpdateStudy(update));
  refused(Delete("none"));
  v1::SuggestTrialsRequest suggest;
  suggest.set_parent(study);
  refused(service_->SuggestTrials(suggest));
  refused(service_->ImportTrials(study, {Measured(1, 1, 1)}));
  v1::ListTrialsRequest list;
  list.set_parent(study);
  refused(service_->ListTrials(list));
  v1::ExportTrialsRequest all;
  all.set_parent(study);
  refused(service_->ExportTrials(all));
  v1::ListOptimalTrialsRequest optimal;
  optimal.set_parent(study);
  refused(service_->ListOptimalTrials(optimal));
  v1::PredictRequest predict;
  predict.set_parent(study);
  refused(service_->Predict(predict));
}

TEST_P(TuningServiceContractTest, UnknownTrialsAreNotFoundByEveryCall) {
  Create("a");
  for (const std::string name : {"studies/a/trials/1", "studies/b/trials/1"}) {
    v1::GetTrialRequest get;
    get.set_name(name);
    EXPECT_THAT(service_->GetTrial(get), StatusIs(absl::StatusCode::kNotFound));
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_name(name);
    EXPECT_THAT(service_->Heartbeat(heartbeat),
                StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(Complete(name, {{"score", 1}}),
                StatusIs(absl::StatusCode::kNotFound));
    EXPECT_THAT(Cancel(name), StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST_P(TuningServiceContractTest, NamesThatAreNoneAreRefusedByField) {
  for (const std::string bad : {"", "a", "studies/", "studies/A", "trials/1"}) {
    v1::GetStudyRequest get;
    get.set_name(bad);
    EXPECT_THAT(service_->GetStudy(get), RefusesField("name"));
    v1::DeleteStudyRequest remove;
    remove.set_name(bad);
    EXPECT_THAT(service_->DeleteStudy(remove), RefusesField("name"));
    v1::UpdateStudyRequest update;
    update.mutable_study()->set_name(bad);
    EXPECT_THAT(service_->UpdateStudy(update), RefusesField("study.name"));
    v1::SuggestTrialsRequest suggest;
    suggest.set_parent(bad);
    EXPECT_THAT(service_->SuggestTrials(suggest), RefusesField("parent"));
    v1::ListTrialsRequest list;
    list.set_parent(bad);
    EXPECT_THAT(service_->ListTrials(list), RefusesField("parent"));
    v1::ExportTrialsRequest all;
    all.set_parent(bad);
    EXPECT_THAT(service_->ExportTrials(all), RefusesField("parent"));
    EXPECT_THAT(service_->ImportTrials(bad, {}), RefusesField("parent"));
  }
  for (const std::string bad :
       {"", "studies/a", "studies/a/trials/", "studies/a/trials/0x1",
        "studies/a/trials/01", "studies/a/trials/99999999999999999999"}) {
    v1::GetTrialRequest get;
    get.set_name(bad);
    EXPECT_THAT(service_->GetTrial(get), RefusesField("name"));
    v1::HeartbeatRequest heartbeat;
    heartbeat.set_name(bad);
    EXPECT_THAT(service_->Heartbeat(heartbeat), RefusesField("name"));
    EXPECT_THAT(Complete(bad, {}), RefusesField("name"));
    EXPECT_THAT(Cancel(bad), RefusesField("name"));
  }
}

// ---- UpdateStudy ----

TEST_P(TuningServiceContractTest, AnUpdateChangesWhatItsMaskNamesAndTheEtag) {
  const v1::Study before = Create("a");
  service_->PassTime(absl::Seconds(3));
  v1::UpdateStudyRequest request;
  request.mutable_study()->set_name(before.name());
  request.mutable_study()->set_etag(before.etag());
  request.mutable_study()->set_display_name("renamed");
  (*request.mutable_study()->mutable_labels())["team"] = "ads";
  (*request.mutable_study()->mutable_labels())["\xc3\xa9"] = "";
  request.mutable_update_mask()->add_paths("labels");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study after,
                               service_->UpdateStudy(request));
  v1::Study expected = before;
  *expected.mutable_labels() = request.study().labels();
  expected.set_etag(after.etag());
  *expected.mutable_update_time() = after.update_time();
  EXPECT_THAT(after, EqualsProto(expected));
  EXPECT_NE(after.etag(), before.etag());
  EXPECT_EQ(after.update_time().seconds(), before.update_time().seconds() + 3);
  EXPECT_THAT(GetStudy("a"), EqualsProto(after));
}

TEST_P(TuningServiceContractTest, AnUpdateWithAStaleEtagIsAborted) {
  const v1::Study first = Create("a");
  v1::UpdateStudyRequest request;
  *request.mutable_study() = first;
  request.mutable_study()->set_display_name("renamed");
  request.mutable_update_mask()->add_paths("display_name");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study second,
                               service_->UpdateStudy(request));
  request.mutable_study()->set_display_name("renamed again");
  EXPECT_THAT(service_->UpdateStudy(request),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(GetStudy("a"), EqualsProto(second));
}

TEST_P(TuningServiceContractTest, AnUpdateOfWhatCannotBeChangedIsRefused) {
  const v1::Study before = Create("a");
  v1::UpdateStudyRequest request;
  request.mutable_study()->set_name(before.name());
  EXPECT_THAT(service_->UpdateStudy(request), RefusesField("update_mask"));
  request.mutable_update_mask()->add_paths("objectives");
  EXPECT_THAT(service_->UpdateStudy(request), RefusesField("update_mask"));
  request.mutable_update_mask()->set_paths(0, "parameters");
  EXPECT_THAT(service_->UpdateStudy(request), RefusesField("study.parameters"));
  EXPECT_THAT(GetStudy("a"), EqualsProto(before));
}

TEST_P(TuningServiceContractTest, AStudyMayGrowButNotShrink) {
  const v1::Study before = Create("a");
  const v1::Trial trial = Suggest("a")[0];
  v1::UpdateStudyRequest request;
  *request.mutable_study() = before;
  request.mutable_study()->clear_etag();
  request.mutable_update_mask()->add_paths("parameters");
  v1::IntegerDomain& x =
      *request.mutable_study()->mutable_parameters(0)->mutable_integer();
  x.set_max(31);
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study grown,
                               service_->UpdateStudy(request));
  EXPECT_EQ(grown.parameters(0).integer().max(), 31);
  EXPECT_THAT(GetTrial(trial.name()), EqualsProto(trial));
  EXPECT_EQ(Import("a", {Measured(31, 0, 1)}).imported(), 1);
  x.set_max(7);
  EXPECT_THAT(service_->UpdateStudy(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(GetStudy("a").parameters(0).integer().max(), 31);
}

// ---- DeleteStudy ----

TEST_P(TuningServiceContractTest, ADeletedStudyTakesItsTrialsWithIt) {
  Create("a");
  Create("b");
  const v1::Trial other = Suggest("b")[0];
  const v1::Trial trial = Suggest("a")[0];
  ASSERT_THAT(Complete(trial.name(), {{"score", 1}}), IsOk());
  EXPECT_THAT(Delete("a"), IsOk());
  EXPECT_THAT(ListStudyIds("", "", 10), ElementsAre("b"));
  v1::GetTrialRequest get;
  get.set_name(trial.name());
  EXPECT_THAT(service_->GetTrial(get), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Delete("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(GetTrial(other.name()), EqualsProto(other));
}

TEST_P(TuningServiceContractTest, AStudyWithHeldTrialsIsDeletedOnlyByForce) {
  Create("a");
  Suggest("a");
  EXPECT_THAT(Delete("a"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Export("a"), SizeIs(1));
  EXPECT_THAT(Delete("a", /*force=*/true), IsOk());
  EXPECT_THAT(ListStudyIds("", "", 10), IsEmpty());
}

TEST_P(TuningServiceContractTest, ADeleteWithAStaleEtagIsAborted) {
  const v1::Study first = Create("a");
  v1::UpdateStudyRequest update;
  *update.mutable_study() = first;
  update.mutable_update_mask()->add_paths("labels");
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Study second,
                               service_->UpdateStudy(update));
  v1::DeleteStudyRequest request;
  request.set_name(first.name());
  request.set_etag(first.etag());
  EXPECT_THAT(service_->DeleteStudy(request),
              StatusIs(absl::StatusCode::kAborted));
  request.set_etag(second.etag());
  EXPECT_THAT(service_->DeleteStudy(request), IsOk());
}

TEST_P(TuningServiceContractTest, AStudyOfADeletedNameStartsAnew) {
  const v1::Study first = Create("a");
  Suggest("a", 3);
  ASSERT_THAT(Delete("a", /*force=*/true), IsOk());
  const v1::Study second = Create("a");
  EXPECT_NE(second.etag(), first.etag());
  EXPECT_EQ(second.progress().trials(), 0);
  EXPECT_THAT(Export("a"), IsEmpty());
  EXPECT_THAT(NamesOf(Suggest("a")), ElementsAre("studies/a/trials/1"));
}

// ---- ListStudies ----

TEST_P(TuningServiceContractTest, StudiesArePagedInEveryOrder) {
  for (const char* id : {"c", "a", "d", "b"}) {
    Create(id);
    service_->PassTime(absl::Seconds(1));
  }
  for (const int page_size : {1, 2, 3, 4, 100}) {
    EXPECT_THAT(ListStudyIds("", "", page_size),
                ElementsAre("a", "b", "c", "d"));
    EXPECT_THAT(ListStudyIds("", "name desc", page_size),
                ElementsAre("d", "c", "b", "a"));
    EXPECT_THAT(ListStudyIds("", "create_time", page_size),
                ElementsAre("c", "a", "d", "b"));
    EXPECT_THAT(ListStudyIds("", "create_time desc", page_size),
                ElementsAre("b", "d", "a", "c"));
  }
}

TEST_P(TuningServiceContractTest, StudiesAreFilteredByTheirFields) {
  for (const std::string id : {"a", "b", "c"}) {
    v1::Study study = PlainStudy();
    study.set_display_name(absl::StrCat("Study ", id));
    (*study.mutable_labels())["team"] = id == "b" ? "ads" : "search";
    Create(id, study);
  }
  EXPECT_THAT(ListStudyIds("labels.team = ads", "", 10), ElementsAre("b"));
  EXPECT_THAT(ListStudyIds("NOT labels.team = ads", "", 1),
              ElementsAre("a", "c"));
  EXPECT_THAT(ListStudyIds("display_name = 'Study c'", "", 10),
              ElementsAre("c"));
  EXPECT_THAT(ListStudyIds("name > \"studies/a\"", "name desc", 10),
              ElementsAre("c", "b"));
  EXPECT_THAT(ListStudyIds("create_time < 2000-01-01T00:00:00Z", "", 10),
              IsEmpty());
}

TEST_P(TuningServiceContractTest, AListOfStudiesLeavesOutTheRowsOfTables) {
  v1::Study study = PlainStudy();
  v1::TableConstraint& table = *study.add_constraints()->mutable_table();
  table.add_columns("x");
  *table.add_rows()->add_values() = IntegerValue(1);
  *study.mutable_parameters(0)->mutable_default_value() = IntegerValue(1);
  Create("a", study);
  const v1::Trial trial = Suggest("a")[0];
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListStudies({}));
  ASSERT_EQ(page.studies_size(), 1);
  EXPECT_THAT(page.studies(0).constraints(0).table().columns(),
              ElementsAre("x"));
  EXPECT_THAT(page.studies(0).constraints(0).table().rows(), IsEmpty());
  EXPECT_EQ(page.studies(0).progress().active_trials(), 1);
  EXPECT_EQ(GetStudy("a").constraints(0).table().rows_size(), 1);
  EXPECT_EQ(trial.parameters().at("x").int64_value(), 1);
}

TEST_P(TuningServiceContractTest, BadListsOfStudiesAreRefusedByField) {
  Create("a");
  Create("b");
  v1::ListStudiesRequest request;
  request.set_page_size(-1);
  EXPECT_THAT(service_->ListStudies(request), RefusesField("page_size"));
  request.set_page_size(1);
  request.set_filter("state = ACTIVE");
  EXPECT_THAT(service_->ListStudies(request), RefusesField("filter"));
  request.set_filter("");
  request.set_order_by("labels");
  EXPECT_THAT(service_->ListStudies(request), RefusesField("order_by"));
  request.set_order_by("");
  request.set_page_token("none");
  EXPECT_THAT(service_->ListStudies(request), RefusesField("page_token"));
  request.set_page_token("");
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListStudies(request));
  request.set_page_token(page.next_page_token());
  request.set_order_by("name desc");
  EXPECT_THAT(service_->ListStudies(request), RefusesField("page_token"));
}

}  // namespace
}  // namespace cubicml
