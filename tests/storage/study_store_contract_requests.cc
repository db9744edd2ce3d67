// SPDX-License-Identifier: Apache-2.0
//
// The rest of the contract: answers to requests, models, hostile values.

#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "tests/storage/example_resources.h"
#include "tests/storage/study_store_contract.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

// ---- Requests ----

TEST_P(StudyStoreContractTest, RepeatedCreateStudyGivesTheFirstAnswer) {
  const RequestKey key = Key("r1", "CreateStudy");
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy first,
                               store_->CreateStudy(ExampleStudy("a"), key));
  clock_.Advance(absl::Seconds(1));
  CUBICML_ASSERT_OK(store_->UpdateStudy("studies/a",
                                        [](v1::Study* study) {
                                          study->set_display_name("later");
                                          return absl::OkStatus();
                                        },
                                        {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy again,
                               store_->CreateStudy(ExampleStudy("a"), key));
  EXPECT_EQ(again.id, first.id);
  EXPECT_THAT(again.study, EqualsProto(first.study));
}

TEST_P(StudyStoreContractTest, RepeatedUpdatesAreCarriedOutOnce) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 1);
  const auto count_up = [](v1::Trial* trial) {
    trial->set_attempt(trial->attempt() + 1);
    return absl::OkStatus();
  };
  const RequestKey key = Key("r1", "CompleteTrial");
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial first,
      store_->UpdateTrial(study, TrialNumber{1}, count_up, key));
  CUBICML_ASSERT_OK(store_->UpdateTrial(study, TrialNumber{1}, count_up, {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial again,
      store_->UpdateTrial(study, TrialNumber{1}, count_up, key));
  EXPECT_THAT(again, EqualsProto(first));
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial now,
                               store_->GetTrial(study, TrialNumber{1}));
  EXPECT_EQ(now.attempt(), 3);

  const auto append = [](v1::Study* changed) {
    changed->set_display_name(changed->display_name() + "x");
    return absl::OkStatus();
  };
  const RequestKey study_key = Key("r2", "UpdateStudy");
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StoredStudy updated,
      store_->UpdateStudy("studies/a", append, study_key));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StoredStudy updated_again,
      store_->UpdateStudy("studies/a", append, study_key));
  EXPECT_THAT(updated_again.study, EqualsProto(updated.study));
  EXPECT_EQ(updated.study.display_name(), "Study ax");
}

TEST_P(StudyStoreContractTest, RepeatedDeleteIsOkAndSparesTheNewStudy) {
  const RequestKey key = Key("r1", "DeleteStudy");
  CreateStudy("a");
  CUBICML_ASSERT_OK(store_->DeleteStudy("studies/a", "", false, key));
  CreateStudy("a");
  CUBICML_EXPECT_OK(store_->DeleteStudy("studies/a", "", false, key));
  CUBICML_EXPECT_OK(store_->GetStudy("studies/a"));
}

TEST_P(StudyStoreContractTest, RepeatedCreateTrialsGivesTheTrialsAsTheyAre) {
  const StudyId study = CreateStudy("a");
  const RequestKey key = Key("r1", "SuggestTrials");
  EXPECT_THAT(store_->FindCreatedTrials(key),
              IsOkAndHolds(testing::Not(Optional(testing::_))));
  CreateTrials(study, 1);
  CUBICML_ASSERT_OK(
      store_->CreateTrials(study, {ExampleTrial(1), ExampleTrial(2)}, key));
  CreateTrials(study, 1);
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{3}, SucceedWith(8), {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const std::vector<v1::Trial> again,
      store_->CreateTrials(study, {ExampleTrial(1), ExampleTrial(2)}, key));
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto found,
                               store_->FindCreatedTrials(key));
  ASSERT_TRUE(found.has_value());
  for (const auto& trials : {again, *found}) {
    ASSERT_THAT(trials, SizeIs(2));
    EXPECT_EQ(NumberOf(trials[0]), 2);
    EXPECT_EQ(NumberOf(trials[1]), 3);
    EXPECT_EQ(trials[1].state(), v1::Trial::SUCCEEDED);
  }
  EXPECT_THAT(ListAllTrials(study, "", "", 10), SizeIs(4));
  CUBICML_ASSERT_OK(store_->DeleteStudy("studies/a", "", true, {}));
  EXPECT_THAT(store_->FindCreatedTrials(key),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StudyStoreContractTest, RequestIdOfAnotherCallIsInvalid) {
  const StudyId study = CreateStudy("a");
  CUBICML_ASSERT_OK(store_->CreateTrials(study, {ExampleTrial(1)},
                                         Key("r1", "SuggestTrials", 1)));
  for (const RequestKey& key :
       {Key("r1", "SuggestTrials", 2), Key("r1", "CreateStudy", 1)}) {
    EXPECT_THAT(store_->FindCreatedTrials(key).status(),
                NamesField("request_id"));
    EXPECT_THAT(store_->CreateTrials(study, {ExampleTrial(1)}, key).status(),
                NamesField("request_id"));
    EXPECT_THAT(store_->CreateStudy(ExampleStudy("b"), key).status(),
                NamesField("request_id"));
    EXPECT_THAT(store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(1), key)
                    .status(),
                NamesField("request_id"));
    EXPECT_THAT(store_->DeleteStudy("studies/a", "", true, key),
                NamesField("request_id"));
  }
  CUBICML_EXPECT_OK(store_->GetStudy("studies/a"));
}

TEST_P(StudyStoreContractTest, OldAnswersAreForgotten) {
  const StudyId study = CreateStudy("a");
  CUBICML_ASSERT_OK(store_->CreateTrials(study, {ExampleTrial(1)},
                                         Key("old", "SuggestTrials")));
  clock_.Advance(absl::Hours(25));
  CUBICML_ASSERT_OK(store_->CreateTrials(study, {ExampleTrial(1)},
                                         Key("new", "SuggestTrials")));
  EXPECT_THAT(store_->DeleteRequestsBefore(clock_.Now() - absl::Hours(24)),
              IsOkAndHolds(1));
  EXPECT_THAT(store_->FindCreatedTrials(Key("old", "SuggestTrials")),
              IsOkAndHolds(testing::Not(Optional(testing::_))));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const auto kept, store_->FindCreatedTrials(Key("new", "SuggestTrials")));
  EXPECT_TRUE(kept.has_value());
}

// ---- Models ----

TEST_P(StudyStoreContractTest, LatestModelIsReturnedByteForByte) {
  const StudyId study = CreateStudy("a");
  EXPECT_THAT(store_->GetLatestModel(study),
              StatusIs(absl::StatusCode::kNotFound));
  for (int version = 1; version <= 4; ++version) {
    StoredModel model;
    model.quality.set_model_version(version);
    model.quality.set_kind("linear");
    model.quality.set_kendall_tau(0.5);
    model.quality.mutable_training_time()->set_nanos(5000);
    model.checkpoint = absl::StrCat(std::string("\0\xff", 2), version);
    CUBICML_ASSERT_OK(store_->CreateModel(study, model));
    CUBICML_ASSERT_OK_AND_ASSIGN(const StoredModel read,
                                 store_->GetLatestModel(study));
    EXPECT_THAT(read.quality, EqualsProto(model.quality));
    EXPECT_EQ(read.checkpoint, model.checkpoint);
  }
}

TEST_P(StudyStoreContractTest, ModelVersionsMustGrow) {
  const StudyId study = CreateStudy("a");
  StoredModel model;
  model.quality.set_model_version(2);
  CUBICML_ASSERT_OK(store_->CreateModel(study, model));
  EXPECT_THAT(store_->CreateModel(study, model),
              StatusIs(absl::StatusCode::kAlreadyExists));
  model.quality.set_model_version(1);
  EXPECT_THAT(store_->CreateModel(study, model),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(store_->CreateModel(StudyId{99}, model),
              StatusIs(absl::StatusCode::kNotFound));
}

// ---- Hostile values ----

TEST_P(StudyStoreContractTest, StringsThatAreNotUtf8AreRefusedByPath) {
  const std::string bad = "\xff\xfe";
  v1::Study study = ExampleStudy("a");
  study.mutable_parameters(0)->set_description(bad);
  EXPECT_THAT(store_->CreateStudy(study, {}).status(),
              NamesField("parameters[0].description"));
  const StudyId id = CreateStudy("a");
  v1::Trial trial = ExampleTrial(1);
  trial.set_reason_detail(bad);
  EXPECT_THAT(store_->CreateTrials(id, {ExampleTrial(1), trial}, {}).status(),
              NamesField("reason_detail"));
  trial = ExampleTrial(1);
  (*trial.mutable_parameters())["tp"].set_string_value(bad);
  EXPECT_THAT(store_->CreateTrials(id, {trial}, {}).status(),
              NamesField("parameters"));
  CreateTrials(id, 1);
  EXPECT_THAT(store_
                  ->UpdateTrial(id, TrialNumber{1},
                                [&](v1::Trial* changed) {
                                  changed->set_client_id(bad);
                                  return absl::OkStatus();
                                },
                                {})
                  .status(),
              NamesField("client_id"));
  EXPECT_THAT(ListAllTrials(id, "", "", 10), ElementsAre("1"));
}

TEST_P(StudyStoreContractTest, NulBytesAndSqlAreOnlyText) {
  const std::string nul("a\0b", 3);
  const std::string sql = "'; DROP TABLE trials; --";
  v1::Study study = ExampleStudy("a");
  study.set_display_name(nul);
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy stored,
                               store_->CreateStudy(study, {}));
  v1::Trial trial = ExampleTrial(1);
  trial.set_client_id(nul);
  trial.set_reason_detail(sql);
  (*trial.mutable_parameters())["kind"].set_string_value(nul);
  (*trial.mutable_parameters())[sql].set_string_value(sql);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto created,
                               store_->CreateTrials(stored.id, {trial}, {}));
  EXPECT_THAT(store_->GetTrial(stored.id, TrialNumber{1}),
              IsOkAndHolds(EqualsProto(created[0])));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store_->GetStudy("studies/a"));
  EXPECT_EQ(read.study.display_name(), nul);
  EXPECT_THAT(ListAllTrials(stored.id, "client_id = \"a\\000b\"", "", 10),
              ElementsAre("1"));
  EXPECT_THAT(ListAllTrials(stored.id, "client_id = a", "", 10), IsEmpty());
}

TEST_P(StudyStoreContractTest, HealthyStoreSaysSo) {
  CUBICML_EXPECT_OK(store_->WriteHealth());
}

}  // namespace
}  // namespace cubicml
