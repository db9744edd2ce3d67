// SPDX-License-Identifier: Apache-2.0
//
// The calls about studies.

#include "server/core/study_service.h"

#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StudyServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Study> Create(const v1::CreateStudyRequest& request) {
    return fixture_.service().CreateStudy(request);
  }
  absl::StatusOr<v1::Study> GetStudy(const std::string& name) {
    v1::GetStudyRequest request;
    request.set_name(name);
    return fixture_.service().GetStudy(request);
  }
  static v1::CreateStudyRequest MakeCreate() {
    v1::CreateStudyRequest request;
    request.set_study_id("llm");
    *request.mutable_study() = TrainingStudy();
    return request;
  }
  size_t CountStudies() {
    return static_cast<size_t>(
        fixture_.service().ListStudies({})->studies_size());
  }

  FakeClock clock_;
  FakeStudyStore store_{&clock_};
  ServiceFixture fixture_{&store_, &clock_};
};

TEST_F(StudyServiceTest, ACreatedStudyCanBeReadBack) {
  const absl::StatusOr<v1::Study> created = Create(MakeCreate());
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->name(), "studies/llm");
  EXPECT_FALSE(created->etag().empty());
  const absl::StatusOr<v1::Study> read = GetStudy("studies/llm");
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(*read, EqualsProto(*created));
  EXPECT_EQ(read->progress().trials(), 0);
}

TEST_F(StudyServiceTest, TheSameDefinitionAgainIsTheSameStudy) {
  v1::CreateStudyRequest request = MakeCreate();
  request.mutable_study()->mutable_settings()->clear_seed();
  const absl::StatusOr<v1::Study> created = Create(request);
  ASSERT_THAT(created, IsOk());
  EXPECT_NE(created->settings().seed(), 0U);
  EXPECT_THAT(*Create(request), EqualsProto(*created));
  request.mutable_study()->set_display_name("another");
  EXPECT_THAT(Create(request), StatusIs(absl::StatusCode::kAlreadyExists,
                                        HasSubstr("studies/llm")));
  EXPECT_EQ(CountStudies(), 1U);
}

TEST_F(StudyServiceTest, BadStudiesAreRefusedByFieldAndStoreNothing) {
  v1::CreateStudyRequest request = MakeCreate();
  request.set_study_id("Not An Id");
  EXPECT_EQ(FieldNamedBy(Create(request).status()), "study_id");
  request = MakeCreate();
  request.mutable_study()->set_name("studies/other");
  EXPECT_EQ(FieldNamedBy(Create(request).status()), "study.name");
  request = MakeCreate();
  request.mutable_study()->mutable_parameters(0)->set_name("9");
  EXPECT_EQ(FieldNamedBy(Create(request).status()), "study.parameters[0].name");
  request = MakeCreate();
  request.mutable_study()->mutable_constraints(0)->set_expression("tp * (");
  const absl::Status status = Create(request).status();
  EXPECT_EQ(FieldNamedBy(status), "study.constraints[0].expression");
  EXPECT_THAT(status.message(), HasSubstr("study.constraints[0].expression"));
  request = MakeCreate();
  request.mutable_study()->add_constraints()->set_expression("1 = 1");
  EXPECT_EQ(FieldNamedBy(Create(request).status()),
            "study.constraints[1].expression");
  request = MakeCreate();
  request.set_request_id(std::string(65, 'x'));
  EXPECT_EQ(FieldNamedBy(Create(request).status()), "request_id");
  EXPECT_EQ(CountStudies(), 0U);
}

TEST_F(StudyServiceTest, ValidateOnlyStoresNothing) {
  v1::CreateStudyRequest request = MakeCreate();
  request.set_validate_only(true);
  EXPECT_THAT(Create(request), IsOk());
  EXPECT_EQ(CountStudies(), 0U);
}

TEST_F(StudyServiceTest, ARequestIdGivesTheSameAnswer) {
  v1::CreateStudyRequest request = MakeCreate();
  request.set_request_id("one");
  const absl::StatusOr<v1::Study> created = Create(request);
  ASSERT_THAT(created, IsOk());
  EXPECT_THAT(*Create(request), EqualsProto(*created));
  request.mutable_study()->set_display_name("another");
  EXPECT_EQ(FieldNamedBy(Create(request).status()), "request_id");
}

TEST_F(StudyServiceTest, UnknownStudiesAreNotFound) {
  EXPECT_THAT(GetStudy("studies/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("studies/none")));
  EXPECT_EQ(FieldNamedBy(GetStudy("none").status()), "name");
  EXPECT_THAT(fixture_.Suggest(fixture_.MakeRequest("none")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fixture_.Complete("studies/none/trials/1", {}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StudyServiceTest, AListShowsCountsWithoutLoadingStudies) {
  fixture_.Create("a", PlainStudy());
  fixture_.Create("b", TrainingStudy());
  ASSERT_THAT(
      fixture_.Complete(fixture_.SuggestOne("a").name(), {{"score", 1.0}}),
      IsOk());
  fixture_.SuggestOne("a");
  fixture_.Restart();
  v1::ListStudiesRequest request;
  request.set_page_size(1);
  absl::StatusOr<v1::ListStudiesResponse> page =
      fixture_.service().ListStudies(request);
  ASSERT_THAT(page, IsOk());
  ASSERT_EQ(page->studies_size(), 1);
  EXPECT_EQ(page->studies(0).progress().trials(), 2);
  EXPECT_EQ(page->studies(0).progress().active_trials(), 1);
  EXPECT_EQ(page->studies(0).progress().succeeded_trials(), 1);
  request.set_page_token(page->next_page_token());
  page = fixture_.service().ListStudies(request);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->studies(0).name(), "studies/b");
  request.set_page_size(-1);
  EXPECT_EQ(FieldNamedBy(fixture_.service().ListStudies(request).status()),
            "page_size");
}

TEST_F(StudyServiceTest, ALivingStudyGainsValuesAndKeepsItsTrials) {
  const v1::Study created = fixture_.Create("llm", TrainingStudy());
  const v1::Trial trial = fixture_.SuggestOne("llm");
  ASSERT_THAT(fixture_.Complete(trial.name(), {{"qps", 10.0}}), IsOk());
  v1::UpdateStudyRequest request;
  *request.mutable_study() = created;
  request.mutable_study()->mutable_parameters(0)->mutable_integer()->add_values(
      16);
  request.mutable_update_mask()->add_paths("parameters");
  const absl::StatusOr<v1::Study> updated =
      fixture_.service().UpdateStudy(request);
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->progress().succeeded_trials(), 1);
  EXPECT_NE(updated->etag(), created.etag());
  // What the etag says was read is not what is there any more.
  EXPECT_THAT(fixture_.service().UpdateStudy(request),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_NE(fixture_.SuggestOne("llm").name(), trial.name());
  // It is told so even if the change itself cannot be.
  request.mutable_study()->mutable_parameters()->RemoveLast();
  EXPECT_THAT(fixture_.service().UpdateStudy(request),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(StudyServiceTest, AnUpdateThatWouldLoseTrialsIsRefused) {
  const v1::Study created = fixture_.Create("llm", TrainingStudy());
  v1::UpdateStudyRequest request;
  *request.mutable_study() = created;
  EXPECT_EQ(FieldNamedBy(fixture_.service().UpdateStudy(request).status()),
            "update_mask");
  request.mutable_update_mask()->add_paths("objectives");
  EXPECT_EQ(FieldNamedBy(fixture_.service().UpdateStudy(request).status()),
            "update_mask");
  request.mutable_update_mask()->set_paths(0, "constraints");
  request.mutable_study()->add_constraints()->set_expression(
      "schedule = 'none of them'");
  EXPECT_EQ(FieldNamedBy(fixture_.service().UpdateStudy(request).status()),
            "study.constraints[1].expression");
  *request.mutable_study() = created;
  request.mutable_update_mask()->set_paths(0, "parameters");
  request.mutable_study()
      ->mutable_parameters(0)
      ->mutable_integer()
      ->mutable_values()
      ->RemoveLast();
  EXPECT_THAT(fixture_.service().UpdateStudy(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(*GetStudy("studies/llm"), EqualsProto(created));
}

TEST_F(StudyServiceTest, ARepeatedUpdateIsAnsweredAsItWas) {
  v1::UpdateStudyRequest request;
  *request.mutable_study() = fixture_.Create("llm", TrainingStudy());
  request.mutable_study()->mutable_parameters(0)->mutable_integer()->add_values(
      16);
  request.mutable_update_mask()->add_paths("parameters");
  request.set_request_id("once");
  const absl::StatusOr<v1::Study> updated =
      fixture_.service().UpdateStudy(request);
  ASSERT_THAT(updated, IsOk());
  // Somebody else goes on from there, to where the first update may not lead.
  v1::UpdateStudyRequest other;
  *other.mutable_study() = *updated;
  other.mutable_study()->mutable_parameters(0)->mutable_integer()->add_values(
      32);
  other.mutable_update_mask()->add_paths("parameters");
  ASSERT_THAT(fixture_.service().UpdateStudy(other), IsOk());
  const absl::StatusOr<v1::Study> again =
      fixture_.service().UpdateStudy(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(*again, EqualsProto(*updated));
  EXPECT_EQ(GetStudy("studies/llm")->parameters(0).integer().values_size(), 6);
}

TEST_F(StudyServiceTest, OfTwoUpdatesAtOnceNoneIsLost) {
  v1::UpdateStudyRequest request;
  *request.mutable_study() = fixture_.Create("llm", TrainingStudy());
  request.mutable_study()->clear_etag();
  request.mutable_study()->set_display_name("Ours");
  request.mutable_update_mask()->add_paths("display_name");
  int updates = 0;
  // Between reading and writing.
  store_.SetUpdateHook([&] {
    if (++updates != 2) return;
    ASSERT_THAT(store_.UpdateStudy("studies/llm",
                                   [](v1::Study* study) {
                                     (*study->mutable_labels())["theirs"] =
                                         "too";
                                     return absl::OkStatus();
                                   },
                                   {}),
                IsOk());
  });
  const absl::StatusOr<v1::Study> updated =
      fixture_.service().UpdateStudy(request);
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->display_name(), "Ours");
  EXPECT_EQ(updated->labels().at("theirs"), "too");
  EXPECT_EQ(updates, 4);
  EXPECT_THAT(*GetStudy("studies/llm"), EqualsProto(*updated));
}

TEST_F(StudyServiceTest, AnUpdateOfAStudyThatIsReplacedMeanwhileSeesTheNewOne) {
  v1::UpdateStudyRequest request;
  *request.mutable_study() = fixture_.Create("a", PlainStudy());
  request.mutable_study()->clear_etag();
  request.mutable_study()->set_display_name("Ours");
  request.mutable_update_mask()->add_paths("display_name");
  int updates = 0;
  store_.SetUpdateHook([&] {
    if (++updates != 2) return;
    ASSERT_THAT(store_.DeleteStudy("studies/a", "", true, {}), IsOk());
    v1::Study next = TrainingStudy();
    next.set_name("studies/a");
    ASSERT_THAT(store_.CreateStudy(next, {}), IsOk());
  });
  const absl::StatusOr<v1::Study> updated =
      fixture_.service().UpdateStudy(request);
  ASSERT_THAT(updated, IsOk());
  EXPECT_EQ(updated->display_name(), "Ours");
  EXPECT_EQ(updated->parameters_size(), TrainingStudy().parameters_size());
}

// As where something else than this service writes.
TEST_F(StudyServiceTest, AnUpdateThatIsAlwaysOvertakenMayBeTriedAgain) {
  v1::UpdateStudyRequest request;
  *request.mutable_study() = fixture_.Create("llm", TrainingStudy());
  request.mutable_study()->clear_etag();
  request.mutable_study()->set_display_name("Ours");
  request.mutable_update_mask()->add_paths("display_name");
  store_.SetUpdateHook([&] {
    ASSERT_THAT(
        store_.UpdateStudy("studies/llm",
                           [](v1::Study*) { return absl::OkStatus(); }, {}),
        IsOk());
  });
  EXPECT_THAT(fixture_.service().UpdateStudy(request),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_NE(GetStudy("studies/llm")->display_name(), "Ours");
}

TEST_F(StudyServiceTest, ARepeatedDeleteLeavesTheNextStudyOfThatNameAlone) {
  fixture_.Create("a", PlainStudy());
  v1::DeleteStudyRequest request;
  request.set_name("studies/a");
  request.set_request_id("once");
  ASSERT_THAT(fixture_.service().DeleteStudy(request), IsOk());
  const v1::Study next = fixture_.Create("a", PlainStudy());
  ASSERT_THAT(GetStudy("studies/a"), IsOk());
  const int64_t loads = store_.scans();
  EXPECT_THAT(fixture_.service().DeleteStudy(request), IsOk());
  EXPECT_THAT(*GetStudy("studies/a"), EqualsProto(next));
  EXPECT_EQ(store_.scans(), loads);
}

TEST_F(StudyServiceTest, ARefusedChangeKeepsTheStudyInMemory) {
  v1::UpdateStudyRequest update;
  *update.mutable_study() = fixture_.Create("a", PlainStudy());
  fixture_.SuggestOne("a");
  const int64_t loads = store_.scans();
  EXPECT_EQ(FieldNamedBy(fixture_.service().UpdateStudy(update).status()),
            "update_mask");
  update.mutable_update_mask()->add_paths("display_name");
  update.mutable_study()->set_etag("stale");
  EXPECT_THAT(fixture_.service().UpdateStudy(update),
              StatusIs(absl::StatusCode::kAborted));
  v1::DeleteStudyRequest erase;
  erase.set_name("studies/a");
  EXPECT_THAT(fixture_.service().DeleteStudy(erase),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(GetStudy("studies/a"), IsOk());
  EXPECT_EQ(store_.scans(), loads);
  update.mutable_study()->clear_etag();
  ASSERT_THAT(fixture_.service().UpdateStudy(update), IsOk());
  EXPECT_EQ(store_.scans(), loads + 1);
}

TEST_F(StudyServiceTest, ADeletedStudyIsGoneAndItsNameFree) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  v1::DeleteStudyRequest request;
  request.set_name("studies/a");
  EXPECT_THAT(fixture_.service().DeleteStudy(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  request.set_force(true);
  request.set_etag("stale");
  EXPECT_THAT(fixture_.service().DeleteStudy(request),
              StatusIs(absl::StatusCode::kAborted));
  request.clear_etag();
  EXPECT_THAT(fixture_.service().DeleteStudy(request), IsOk());
  EXPECT_THAT(GetStudy("studies/a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(fixture_.Get(trial.name()),
              StatusIs(absl::StatusCode::kNotFound));
  fixture_.Create("a", TrainingStudy());
  EXPECT_EQ(GetStudy("studies/a")->progress().trials(), 0);
}

TEST_F(StudyServiceTest, AStoreThatRefusesWritesChangesNothing) {
  fixture_.Create("a", PlainStudy());
  const v1::SuggestTrialsRequest request = fixture_.MakeRequest("a", 3);
  store_.SetWriteError(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(fixture_.Suggest(request),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Create(MakeCreate()),
              StatusIs(absl::StatusCode::kResourceExhausted));
  store_.SetWriteError(absl::OkStatus());
  // What could not be stored is suggested again.
  const absl::StatusOr<v1::SuggestTrialsResponse> response =
      fixture_.Suggest(request);
  ASSERT_THAT(response, IsOk());
  ASSERT_EQ(response->trials_size(), 3);
  EXPECT_EQ(response->trials(0).suggestion().source(), v1::Trial::BASELINE);
  EXPECT_EQ(response->trials(1).suggestion().source(),
            v1::Trial::INITIAL_DESIGN);
}

}  // namespace
}  // namespace cubicml
