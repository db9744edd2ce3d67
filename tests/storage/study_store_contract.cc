// SPDX-License-Identifier: Apache-2.0

#include "tests/storage/study_store_contract.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "storage/proto_time.h"
#include "tests/storage/example_resources.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

StudyId StudyStoreContractTest::CreateStudy(absl::string_view id) {
  const auto stored = store_->CreateStudy(ExampleStudy(id), {});
  EXPECT_THAT(stored, IsOk());
  return stored.ok() ? stored->id : StudyId{};
}

std::vector<v1::Trial> StudyStoreContractTest::CreateTrials(StudyId study,
                                                            int count) {
  std::vector<v1::Trial> trials;
  for (int i = 0; i < count; ++i) {
    trials.push_back(ExampleTrial(static_cast<uint64_t>(i)));
  }
  auto created = store_->CreateTrials(study, std::move(trials), {});
  EXPECT_THAT(created, IsOk());
  return created.ok() ? *std::move(created) : std::vector<v1::Trial>();
}

std::vector<std::string> StudyStoreContractTest::ListAllTrials(
    StudyId study, const std::string& filter, const std::string& order_by,
    int page_size) {
  std::vector<std::string> names;
  ListOptions options;
  options.page_size = page_size;
  options.filter = filter;
  options.order_by = order_by;
  do {
    const auto page = store_->ListTrials(study, options);
    EXPECT_THAT(page, IsOk());
    if (!page.ok()) return {};
    EXPECT_LE(page->trials.size(), static_cast<size_t>(page_size));
    for (const v1::Trial& trial : page->trials) {
      names.push_back(absl::StrCat(NumberOf(trial)));
    }
    options.page_token = page->next_page_token;
  } while (!options.page_token.empty());
  return names;
}

namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;

// ---- Studies ----

TEST_P(StudyStoreContractTest, CreatedStudyIsStoredWithTimesAndEtag) {
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy created,
                               store_->CreateStudy(ExampleStudy("a"), {}));
  EXPECT_GT(created.id.value, 0);
  EXPECT_FALSE(created.study.etag().empty());
  EXPECT_EQ(MicrosFromTimestamp(created.study.create_time()),
            absl::ToUnixMicros(clock_.Now()));
  EXPECT_EQ(MicrosFromTimestamp(created.study.update_time()),
            absl::ToUnixMicros(clock_.Now()));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store_->GetStudy("studies/a"));
  EXPECT_EQ(read.id, created.id);
  EXPECT_THAT(read.study, EqualsProto(created.study));
  v1::Study expected = ExampleStudy("a");
  expected.set_etag(read.study.etag());
  *expected.mutable_create_time() = read.study.create_time();
  *expected.mutable_update_time() = read.study.update_time();
  EXPECT_THAT(read.study, EqualsProto(expected));
}

TEST_P(StudyStoreContractTest, ProgressIsNotStored) {
  v1::Study study = ExampleStudy("a");
  study.mutable_progress()->set_trials(5);
  CUBICML_ASSERT_OK(store_->CreateStudy(study, {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store_->GetStudy("studies/a"));
  EXPECT_FALSE(read.study.has_progress());
}

TEST_P(StudyStoreContractTest, TakenNameIsAlreadyExistsAndNamesTheStudy) {
  CreateStudy("a");
  EXPECT_THAT(
      store_->CreateStudy(ExampleStudy("a"), {}),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("studies/a")));
}

TEST_P(StudyStoreContractTest, UnknownStudyIsNotFound) {
  EXPECT_THAT(store_->GetStudy("studies/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(
      store_->UpdateStudy("studies/none",
                          [](v1::Study*) { return absl::OkStatus(); }, {}),
      StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->DeleteStudy("studies/none", "", false, {}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StudyStoreContractTest, UpdateStudyChangesWhatTheMutationChanges) {
  CreateStudy("a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy before,
                               store_->GetStudy("studies/a"));
  clock_.Advance(absl::Seconds(5));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StoredStudy after,
      store_->UpdateStudy("studies/a",
                          [](v1::Study* study) {
                            study->set_display_name("renamed");
                            study->set_name("studies/other");  // cannot change
                            return absl::OkStatus();
                          },
                          {}));
  EXPECT_EQ(after.id, before.id);
  EXPECT_EQ(after.study.name(), "studies/a");
  EXPECT_EQ(after.study.display_name(), "renamed");
  EXPECT_NE(after.study.etag(), before.study.etag());
  EXPECT_THAT(after.study.create_time(),
              EqualsProto(before.study.create_time()));
  EXPECT_EQ(MicrosFromTimestamp(after.study.update_time()),
            absl::ToUnixMicros(clock_.Now()));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store_->GetStudy("studies/a"));
  EXPECT_THAT(read.study, EqualsProto(after.study));
}

TEST_P(StudyStoreContractTest,
       FailedStudyMutationIsTheAnswerAndChangesNothing) {
  CreateStudy("a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy before,
                               store_->GetStudy("studies/a"));
  EXPECT_THAT(store_->UpdateStudy(
                  "studies/a",
                  [](v1::Study* study) {
                    study->set_display_name("lost");
                    return absl::FailedPreconditionError("no");
                  },
                  Key("r1", "UpdateStudy")),
              StatusIs(absl::StatusCode::kFailedPrecondition, "no"));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy read,
                               store_->GetStudy("studies/a"));
  EXPECT_THAT(read.study, EqualsProto(before.study));
}

TEST_P(StudyStoreContractTest, AnotherFirstObjectiveReordersTheTrials) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 2);
  for (const int number : {1, 2}) {
    CUBICML_ASSERT_OK(store_->UpdateTrial(
        study, TrialNumber{number},
        [number](v1::Trial* trial) {
          trial->set_state(v1::Trial::SUCCEEDED);
          (*trial->mutable_metrics())["qps"] = number;
          (*trial->mutable_metrics())["memory_gib"] = 10 - number;
          return absl::OkStatus();
        },
        {}));
  }
  EXPECT_THAT(ListAllTrials(study, "", "objective", 10), ElementsAre("1", "2"));
  CUBICML_ASSERT_OK(store_->UpdateStudy(
      "studies/a",
      [](v1::Study* changed) {
        changed->mutable_objectives(0)->mutable_metric()->set_name(
            "memory_gib");
        return absl::OkStatus();
      },
      {}));
  EXPECT_THAT(ListAllTrials(study, "", "objective", 10), ElementsAre("2", "1"));
  EXPECT_THAT(ListAllTrials(study, "objective = 9", "", 10), ElementsAre("1"));
}

TEST_P(StudyStoreContractTest, DeleteStudyTakesItsTrialsAndModels) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 2);
  StoredModel model;
  model.quality.set_model_version(1);
  CUBICML_ASSERT_OK(store_->CreateModel(study, model));
  CUBICML_ASSERT_OK(store_->DeleteStudy("studies/a", "", true, {}));
  EXPECT_THAT(store_->GetStudy("studies/a"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{1}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetLatestModel(study),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->CreateTrials(study, {v1::Trial()}, {}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->CountTrials(study), IsOkAndHolds(IsEmpty()));
}

TEST_P(StudyStoreContractTest, StudyWithHeldTrialsIsDeletedOnlyByForce) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 1);
  EXPECT_THAT(store_->DeleteStudy("studies/a", "", false, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(1), {}));
  CUBICML_EXPECT_OK(store_->DeleteStudy("studies/a", "", false, {}));
}

TEST_P(StudyStoreContractTest, DeleteStudyWithAStaleEtagIsAborted) {
  CreateStudy("a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy stored,
                               store_->GetStudy("studies/a"));
  CUBICML_ASSERT_OK(store_->UpdateStudy(
      "studies/a", [](v1::Study*) { return absl::OkStatus(); }, {}));
  EXPECT_THAT(store_->DeleteStudy("studies/a", stored.study.etag(), true, {}),
              StatusIs(absl::StatusCode::kAborted));
  CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy current,
                               store_->GetStudy("studies/a"));
  CUBICML_EXPECT_OK(
      store_->DeleteStudy("studies/a", current.study.etag(), false, {}));
}

TEST_P(StudyStoreContractTest, IdsAndNumbersAreNeverUsedAgain) {
  const StudyId first = CreateStudy("a");
  CreateTrials(first, 3);
  CUBICML_ASSERT_OK(store_->DeleteStudy("studies/a", "", true, {}));
  const StudyId second = CreateStudy("a");
  EXPECT_GT(second, first);
  EXPECT_EQ(NumberOf(CreateTrials(second, 1)[0]), 1);
}

TEST_P(StudyStoreContractTest, ListStudiesPagesByNameAndByTime) {
  for (const char* id : {"c", "a", "d", "b"}) {
    CreateStudy(id);
    clock_.Advance(absl::Seconds(1));
  }
  const auto list = [this](const std::string& order, int page_size,
                           const std::string& filter = "") {
    std::string ids;
    ListOptions options;
    options.order_by = order;
    options.page_size = page_size;
    options.filter = filter;
    do {
      const auto page = store_->ListStudies(options);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) return std::string("failed");
      for (const StoredStudy& stored : page->studies) {
        ids += stored.study.name().back();
      }
      options.page_token = page->next_page_token;
    } while (!options.page_token.empty());
    return ids;
  };
  for (const int page_size : {1, 2, 3, 4, 100}) {
    EXPECT_EQ(list("", page_size), "abcd");
    EXPECT_EQ(list("name desc", page_size), "dcba");
    EXPECT_EQ(list("create_time", page_size), "cadb");
    EXPECT_EQ(list("create_time desc", page_size), "bdac");
  }
  EXPECT_EQ(list("", 2, "name > \"studies/b\""), "cd");
  EXPECT_EQ(list("", 2, "labels.team = ads"), "abcd");
  EXPECT_EQ(list("", 2, "labels.team != ads"), "");
  EXPECT_EQ(list("", 2, "NOT labels.none = ads"), "abcd");
  EXPECT_EQ(list("", 2, "display_name = 'Study b'"), "b");
  EXPECT_EQ(list("", 2, "create_time < 2000-01-01T00:00:00Z"), "");
}

// ---- Trials ----

TEST_P(StudyStoreContractTest, TrialsAreNumberedFromOneWithNamesAndTimes) {
  const StudyId study = CreateStudy("a");
  const std::vector<v1::Trial> first = CreateTrials(study, 2);
  const std::vector<v1::Trial> second = CreateTrials(study, 1);
  ASSERT_THAT(first, SizeIs(2));
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(first[0].name(), "studies/a/trials/1");
  EXPECT_EQ(first[1].name(), "studies/a/trials/2");
  EXPECT_EQ(second[0].name(), "studies/a/trials/3");
  EXPECT_EQ(MicrosFromTimestamp(first[0].create_time()),
            absl::ToUnixMicros(clock_.Now()));
  EXPECT_EQ(MicrosFromTimestamp(first[0].update_time()),
            absl::ToUnixMicros(clock_.Now()));
  v1::Trial expected = ExampleTrial(1);
  expected.set_name("studies/a/trials/2");
  *expected.mutable_create_time() = first[1].create_time();
  *expected.mutable_update_time() = first[1].update_time();
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{2}),
              IsOkAndHolds(EqualsProto(expected)));
}

TEST_P(StudyStoreContractTest, UnknownTrialIsNotFound) {
  const StudyId study = CreateStudy("a");
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{1}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(1), {}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->GetTrial(StudyId{99}, TrialNumber{1}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_->CreateTrials(StudyId{99}, {v1::Trial()}, {}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StudyStoreContractTest, NoIdStandsForAllStudies) {
  CreateTrials(CreateStudy("a"), 2);
  for (const StudyId none : {StudyId{0}, StudyId{-1}, StudyId{99}}) {
    EXPECT_THAT(ListAllTrials(none, "", "", 10), IsEmpty());
    EXPECT_THAT(store_->CountTrials(none), IsOkAndHolds(IsEmpty()));
    CUBICML_EXPECT_OK(store_->ScanTrials(none, ScanOptions(), [](v1::Trial&&) {
      return absl::InternalError("there is nothing to visit");
    }));
  }
}

TEST_P(StudyStoreContractTest, UpdateTrialChangesWhatTheMutationChanges) {
  const StudyId study = CreateStudy("a");
  const v1::Trial before = CreateTrials(study, 1)[0];
  clock_.Advance(absl::Seconds(3));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial after,
      store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(12.5), {}));
  v1::Trial expected = before;
  expected.set_state(v1::Trial::SUCCEEDED);
  (*expected.mutable_metrics())["qps"] = 12.5;
  SetTimestamp(absl::ToUnixMicros(clock_.Now()),
               expected.mutable_update_time());
  EXPECT_THAT(after, EqualsProto(expected));
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{1}),
              IsOkAndHolds(EqualsProto(expected)));
}

TEST_P(StudyStoreContractTest,
       FailedTrialMutationIsTheAnswerAndChangesNothing) {
  const StudyId study = CreateStudy("a");
  const v1::Trial before = CreateTrials(study, 1)[0];
  EXPECT_THAT(store_->UpdateTrial(
                  study, TrialNumber{1},
                  [](v1::Trial* trial) {
                    trial->set_state(v1::Trial::CANCELLED);
                    return FieldError("state", "no");
                  },
                  Key("r", "CompleteTrial")),
              StatusIs(absl::StatusCode::kInvalidArgument, "state: no"));
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{1}),
              IsOkAndHolds(EqualsProto(before)));
  // A failed call is not remembered.
  CUBICML_EXPECT_OK(store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(1),
                                        Key("r", "CompleteTrial")));
}

TEST_P(StudyStoreContractTest, HeartbeatsKeepEverythingElse) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 1);
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{1}, SucceedWith(4), {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const v1::Trial renewed,
      store_->UpdateTrial(study, TrialNumber{1},
                          [](v1::Trial* trial) {
                            SetTimestamp(77 * kMicrosPerSecond,
                                         trial->mutable_lease_expire_time());
                            trial->mutable_intermediate()->set_step(9);
                            return absl::OkStatus();
                          },
                          {}));
  EXPECT_EQ(renewed.state(), v1::Trial::SUCCEEDED);
  EXPECT_THAT(store_->GetTrial(study, TrialNumber{1}),
              IsOkAndHolds(EqualsProto(renewed)));
  EXPECT_THAT(
      ListAllTrials(study, "objective = 4 AND state = SUCCEEDED", "", 10),
      ElementsAre("1"));
}

TEST_P(StudyStoreContractTest, ConcurrentUpdatesOfOneTrialAreAllApplied) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 1);
  constexpr int kThreads = 8;
  constexpr int kUpdates = 25;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kUpdates; ++j) {
        CUBICML_EXPECT_OK(store_->UpdateTrial(study, TrialNumber{1},
                                              [](v1::Trial* trial) {
                                                trial->set_attempt(
                                                    trial->attempt() + 1);
                                                return absl::OkStatus();
                                              },
                                              {}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial trial,
                               store_->GetTrial(study, TrialNumber{1}));
  EXPECT_EQ(trial.attempt(), 1 + kThreads * kUpdates);
}

TEST_P(StudyStoreContractTest, ConcurrentCreationsGetNumbersWithoutGaps) {
  const StudyId study = CreateStudy("a");
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        CUBICML_EXPECT_OK(store_->CreateTrials(
            study, {ExampleTrial(1), ExampleTrial(2)}, {}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t expected = 0;
  CUBICML_ASSERT_OK(
      store_->ScanTrials(study, ScanOptions(), [&](v1::Trial&& trial) {
        EXPECT_EQ(NumberOf(trial), ++expected);
        return absl::OkStatus();
      }));
  EXPECT_EQ(expected, 120);
}

TEST_P(StudyStoreContractTest, ListTrialsPagesInEveryOrder) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 6);
  // Objectives 30, -, 10, 20, -, 10; ties go by number.
  const std::map<int, double> objectives = {{1, 30}, {3, 10}, {4, 20}, {6, 10}};
  for (const auto& [number, objective] : objectives) {
    CUBICML_ASSERT_OK(store_->UpdateTrial(
        study, TrialNumber{number},
        [&, number = number, objective = objective](v1::Trial* trial) {
          SetTimestamp((100 - number) * kMicrosPerSecond,
                       trial->mutable_end_time());
          return SucceedWith(objective)(trial);
        },
        {}));
  }
  for (const int page_size : {1, 2, 3, 4, 5, 6, 100}) {
    EXPECT_THAT(ListAllTrials(study, "", "", page_size),
                ElementsAre("1", "2", "3", "4", "5", "6"));
    EXPECT_THAT(ListAllTrials(study, "", "number desc", page_size),
                ElementsAre("6", "5", "4", "3", "2", "1"));
    EXPECT_THAT(ListAllTrials(study, "", "objective", page_size),
                ElementsAre("3", "6", "4", "1", "2", "5"));
    EXPECT_THAT(ListAllTrials(study, "", "objective desc", page_size),
                ElementsAre("1", "4", "6", "3", "5", "2"));
    EXPECT_THAT(ListAllTrials(study, "", "end_time", page_size),
                ElementsAre("6", "4", "3", "1", "2", "5"));
    EXPECT_THAT(ListAllTrials(study, "", "create_time desc", page_size),
                ElementsAre("6", "5", "4", "3", "2", "1"));
    EXPECT_THAT(
        ListAllTrials(study, "NOT objective > 15", "objective", page_size),
        ElementsAre("3", "6", "2", "5"));
  }
}

TEST_P(StudyStoreContractTest, InfiniteObjectivesAreOrderedAndNaNIsNone) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 4);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {infinity, std::nan(""), -infinity, 0};
  for (size_t i = 0; i < values.size(); ++i) {
    CUBICML_ASSERT_OK(
        store_->UpdateTrial(study, TrialNumber{static_cast<int64_t>(i) + 1},
                            SucceedWith(values[i]), {}));
  }
  for (const int page_size : {1, 10}) {
    EXPECT_THAT(ListAllTrials(study, "", "objective", page_size),
                ElementsAre("3", "4", "1", "2"));
    EXPECT_THAT(ListAllTrials(study, "", "objective desc", page_size),
                ElementsAre("1", "4", "3", "2"));
  }
  CUBICML_ASSERT_OK_AND_ASSIGN(const v1::Trial trial,
                               store_->GetTrial(study, TrialNumber{2}));
  EXPECT_TRUE(std::isnan(trial.metrics().at("qps")));
}

TEST_P(StudyStoreContractTest, PagesSurviveRowsThatComeBetween) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 4);
  ListOptions options;
  options.page_size = 2;
  CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage first,
                               store_->ListTrials(study, options));
  CreateTrials(study, 1);
  options.page_token = first.next_page_token;
  options.page_size = 10;  // may change between pages
  CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage second,
                               store_->ListTrials(study, options));
  ASSERT_THAT(second.trials, SizeIs(3));
  EXPECT_EQ(NumberOf(second.trials[0]), 3);
  EXPECT_EQ(second.next_page_token, "");
}

TEST_P(StudyStoreContractTest, EveryFieldFilters) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 3);
  clock_.Advance(absl::Hours(1));
  CUBICML_ASSERT_OK(store_->UpdateTrial(
      study, TrialNumber{2},
      [](v1::Trial* trial) {
        trial->set_state(v1::Trial::INFEASIBLE);
        trial->set_reason(v1::Trial::OUT_OF_MEMORY);
        trial->set_late(true);
        trial->set_attempt(4);
        trial->mutable_suggestion()->set_source(v1::Trial::BASELINE);
        SetTimestamp(1'600'000'000 * kMicrosPerSecond,
                     trial->mutable_end_time());
        return absl::OkStatus();
      },
      {}));
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{3}, SucceedWith(1500), {}));
  const auto list = [&](const std::string& filter) {
    return ListAllTrials(study, filter, "", 2);
  };
  EXPECT_THAT(list("number >= 2"), ElementsAre("2", "3"));
  EXPECT_THAT(list("state = ACTIVE"), ElementsAre("1"));
  EXPECT_THAT(list("state != ACTIVE"), ElementsAre("2", "3"));
  EXPECT_THAT(list("reason = OUT_OF_MEMORY"), ElementsAre("2"));
  EXPECT_THAT(list("source = BASELINE"), ElementsAre("2"));
  EXPECT_THAT(list("client_id = \"job-0\""), ElementsAre("1"));
  EXPECT_THAT(list("client_id > job-0"), ElementsAre("2", "3"));
  EXPECT_THAT(list("attempt = 4"), ElementsAre("2"));
  EXPECT_THAT(list("late = true"), ElementsAre("2"));
  EXPECT_THAT(list("late != true"), ElementsAre("1", "3"));
  EXPECT_THAT(list("objective > 1e3"), ElementsAre("3"));
  EXPECT_THAT(list("objective != 1"), ElementsAre("3"));
  EXPECT_THAT(list("end_time < 2021-01-01T00:00:00Z"), ElementsAre("2"));
  EXPECT_THAT(list("create_time >= 2023-01-01T00:00:00+01:00"),
              ElementsAre("1", "2", "3"));
  EXPECT_THAT(list("state = SUCCEEDED AND objective > 1000"), ElementsAre("3"));
  EXPECT_THAT(list("NOT (state = ACTIVE OR late = true)"), ElementsAre("3"));
}

TEST_P(StudyStoreContractTest, BadListOptionsNameTheField) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 3);
  const auto status = [&](const ListOptions& options) {
    const auto page = store_->ListTrials(study, options);
    EXPECT_THAT(page, StatusIs(absl::StatusCode::kInvalidArgument));
    return page.status();
  };
  ListOptions options;
  options.filter = "state = SUCCEEDED AND";
  EXPECT_THAT(status(options), NamesField("filter"));
  options = {};
  options.order_by = "objective; DROP TABLE trials";
  EXPECT_THAT(status(options), NamesField("order_by"));
  options = {};
  options.page_token = "nonsense";
  EXPECT_THAT(status(options), NamesField("page_token"));
  options = {};
  options.page_size = 0;
  EXPECT_THAT(status(options), NamesField("page_size"));
  // A token of another list.
  options = {};
  options.page_size = 1;
  CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage page,
                               store_->ListTrials(study, options));
  options.page_token = page.next_page_token;
  options.filter = "state = ACTIVE";
  EXPECT_THAT(status(options), NamesField("page_token"));
}

TEST_P(StudyStoreContractTest, ScanVisitsInOrderAndStopsAtTheFirstError) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 5);
  std::vector<int64_t> seen;
  EXPECT_THAT(store_->ScanTrials(
                  study, {.after = TrialNumber{1}, .filter = "number != 3"},
                  [&](v1::Trial&& trial) -> absl::Status {
                    seen.push_back(NumberOf(trial));
                    // The visitor may call the store.
                    CUBICML_EXPECT_OK(store_->GetTrial(study, TrialNumber{1}));
                    if (seen.size() == 2) {
                      return absl::CancelledError("enough");
                    }
                    return absl::OkStatus();
                  }),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  EXPECT_THAT(seen, ElementsAre(2, 4));
  EXPECT_THAT(store_->ScanTrials(study, {.filter = "bad"},
                                 [](v1::Trial&&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(StudyStoreContractTest, ScanGoesOverManyPages) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 1300);
  int64_t count = 0;
  CUBICML_ASSERT_OK(
      store_->ScanTrials(study, ScanOptions(), [&](v1::Trial&& trial) {
        EXPECT_EQ(NumberOf(trial), ++count);
        return absl::OkStatus();
      }));
  EXPECT_EQ(count, 1300);
}

// ---- Bounds of reads ----

TEST_P(StudyStoreContractTest, ReadsThatNobodyWaitsForAreNotBegun) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 2);
  const auto late = [] { return absl::DeadlineExceededError("too late"); };
  ListOptions list;
  list.check = late;
  EXPECT_THAT(store_->ListTrials(study, list),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "too late"));
  EXPECT_THAT(store_->ListStudies(list),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "too late"));
  const auto visit = [](v1::Trial&&) {
    return absl::InternalError("nobody waits for it");
  };
  EXPECT_THAT(store_->ScanTrials(study, {.check = late}, visit),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "too late"));
}

TEST_P(StudyStoreContractTest, ReadsEndWhenNobodyWaitsForThemAnyMore) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 3000);
  int asked = 0;
  const auto give_up = [&asked] {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("left");
  };
  // Nothing is found, so no page and no visitor ends the search before.
  ListOptions list;
  list.filter = "client_id = none OR client_id = nobody";
  list.check = give_up;
  EXPECT_THAT(store_->ListTrials(study, list),
              StatusIs(absl::StatusCode::kCancelled, "left"));
  EXPECT_EQ(asked, 3);
  asked = 0;
  EXPECT_THAT(
      store_->ScanTrials(study, {.filter = list.filter, .check = give_up},
                         [](v1::Trial&&) { return absl::OkStatus(); }),
      StatusIs(absl::StatusCode::kCancelled, "left"));
  EXPECT_EQ(asked, 3);
  // Who comes next is not concerned.
  list.check = [] { return absl::OkStatus(); };
  CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage page,
                               store_->ListTrials(study, list));
  EXPECT_THAT(page.trials, IsEmpty());
  EXPECT_EQ(ListAllTrials(study, "", "", 1000).size(), 3000U);
}

TEST_P(StudyStoreContractTest, PagesOfTrialsEndWhenTheyAreLarge) {
  const StudyId study = CreateStudy("a");
  std::vector<v1::Trial> trials;
  for (int i = 0; i < 7; ++i) {
    trials.push_back(ExampleTrial(static_cast<uint64_t>(i)));
    // Of the fourth alone a page is too small.
    trials.back().set_client_id(std::string(i == 3 ? 5000 : 1000, 'x'));
    if (i % 2 == 0) (*trials.back().mutable_metrics())["qps"] = -i;
  }
  CUBICML_ASSERT_OK(store_->CreateTrials(study, trials, {}));
  const std::tuple<const char*, std::vector<int64_t>, std::vector<size_t>>
      lists[] = {{"", {1, 2, 3, 4, 5, 6, 7}, {2, 1, 1, 2, 1}},
                 {"number desc", {7, 6, 5, 4, 3, 2, 1}, {2, 1, 1, 2, 1}},
                 {"objective", {7, 5, 3, 1, 2, 4, 6}, {2, 2, 1, 1, 1}}};
  for (const auto& [order, expected_numbers, expected_lengths] : lists) {
    ListOptions options;
    options.order_by = order;
    options.max_bytes = 3000;
    std::vector<int64_t> numbers;
    std::vector<size_t> lengths;
    do {
      CUBICML_ASSERT_OK_AND_ASSIGN(const TrialPage page,
                                   store_->ListTrials(study, options));
      size_t bytes = 0;
      for (const v1::Trial& trial : page.trials) {
        numbers.push_back(NumberOf(trial));
        bytes += trial.ByteSizeLong();
      }
      lengths.push_back(page.trials.size());
      EXPECT_TRUE(bytes <= options.max_bytes || page.trials.size() == 1);
      options.page_token = page.next_page_token;
    } while (!options.page_token.empty());
    EXPECT_EQ(numbers, expected_numbers) << order;
    EXPECT_EQ(lengths, expected_lengths) << order;
  }
}

TEST_P(StudyStoreContractTest, PagesOfStudiesEndWhenTheyAreLarge) {
  for (const char* id : {"a", "b", "c"}) {
    v1::Study study = ExampleStudy(id);
    study.mutable_parameters(0)->set_description(std::string(1000, 'x'));
    CUBICML_ASSERT_OK(store_->CreateStudy(study, {}));
  }
  ListOptions options;
  options.max_bytes = 2500;
  CUBICML_ASSERT_OK_AND_ASSIGN(StudyPage page, store_->ListStudies(options));
  EXPECT_THAT(page.studies, SizeIs(2));
  options.page_token = page.next_page_token;
  CUBICML_ASSERT_OK_AND_ASSIGN(page, store_->ListStudies(options));
  ASSERT_THAT(page.studies, SizeIs(1));
  EXPECT_EQ(page.studies[0].study.name(), "studies/c");
  EXPECT_EQ(page.next_page_token, "");
}

TEST_P(StudyStoreContractTest, NothingIsAddedToAStudyThatIsBeingDeleted) {
  const StudyId study = CreateStudy("a");
  CreateTrials(study, 5000);  // more than are deleted at once
  absl::Status deleted;
  std::atomic<bool> deleting_ended = false;
  std::thread deleting([&] {
    deleted = store_->DeleteStudy("studies/a", "", true, {});
    deleting_ended = true;
  });
  absl::Status created;
  absl::Status modelled;
  StoredModel model;
  // What is added before the deletion begins goes with it; nothing is added
  // after it has ended.
  while (created.ok() || modelled.ok()) {
    const bool last = deleting_ended;
    if (created.ok()) {
      const auto trials = store_->CreateTrials(study, {ExampleTrial(1)}, {});
      created = trials.status();
      if (trials.ok()) {
        EXPECT_THAT(trials->at(0).name(), HasSubstr("studies/a/trials/"));
      }
    }
    if (modelled.ok()) {
      model.quality.set_model_version(model.quality.model_version() + 1);
      modelled = store_->CreateModel(study, model);
    }
    if (last) break;
  }
  EXPECT_THAT(created, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(modelled, StatusIs(absl::StatusCode::kNotFound));
  deleting.join();
  CUBICML_EXPECT_OK(deleted);
  EXPECT_THAT(store_->CountTrials(study), IsOkAndHolds(IsEmpty()));
}

TEST_P(StudyStoreContractTest, CountTrialsFollowsTheStates) {
  const StudyId study = CreateStudy("a");
  EXPECT_THAT(store_->CountTrials(study), IsOkAndHolds(IsEmpty()));
  CreateTrials(study, 3);
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{2}, SucceedWith(1), {}));
  CUBICML_ASSERT_OK(
      store_->UpdateTrial(study, TrialNumber{2}, SucceedWith(2), {}));
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto counts, store_->CountTrials(study));
  EXPECT_THAT(counts, UnorderedElementsAre(Pair(v1::Trial::ACTIVE, 2),
                                           Pair(v1::Trial::SUCCEEDED, 1)));
}

TEST_P(StudyStoreContractTest, ExpiredLeasesAreThoseOfHeldTrials) {
  const StudyId a = CreateStudy("a");
  const StudyId b = CreateStudy("b");
  const auto create = [&](StudyId study, v1::Trial::State state,
                          std::optional<int64_t> lease_s) {
    v1::Trial trial = ExampleTrial(1);
    trial.set_state(state);
    if (lease_s.has_value()) {
      SetTimestamp(*lease_s * kMicrosPerSecond,
                   trial.mutable_lease_expire_time());
    }
    CUBICML_EXPECT_OK(store_->CreateTrials(study, {trial}, {}));
  };
  create(a, v1::Trial::ACTIVE, 100);
  create(a, v1::Trial::SUCCEEDED, 100);
  create(a, v1::Trial::ACTIVE, 200);
  create(a, v1::Trial::ACTIVE, std::nullopt);
  create(b, v1::Trial::STOPPING, 50);
  const auto expired = [&](int64_t now_s) {
    const auto keys = store_->ListExpiredLeases(absl::FromUnixSeconds(now_s));
    EXPECT_THAT(keys, IsOk());
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const auto& key : *keys) {
      pairs.emplace_back(key.study.value, key.number.value);
    }
    return pairs;
  };
  EXPECT_THAT(expired(50), IsEmpty());
  EXPECT_THAT(expired(100), UnorderedElementsAre(Pair(b.value, 1)));
  EXPECT_THAT(expired(101),
              UnorderedElementsAre(Pair(a.value, 1), Pair(b.value, 1)));
  EXPECT_THAT(expired(1000), SizeIs(3));
}

}  // namespace
}  // namespace cubicml
