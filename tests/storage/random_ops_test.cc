// SPDX-License-Identifier: Apache-2.0
//
// The real store beside the fake for 10,000 random calls, with restarts of the
// real one now and then: every answer must be the same.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "storage/proto_time.h"
#include "storage/sqlite_study_store.h"
#include "tests/storage/example_resources.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

class RandomOpsTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    real_.reset();
    SqliteStudyStore::Options options;
    options.path = dir_.PathOf("cubicml.db");
    options.clock = &clock_;
    options.readers = 1;
    options.durable = false;  // the process does not die
    auto store = SqliteStudyStore::Open(options);
    ASSERT_THAT(store, IsOk());
    real_ = *std::move(store);
  }

  std::string AnyStudy() { return absl::StrCat("s", rng_.Below(4)); }
  std::string AnyName() { return "studies/" + AnyStudy(); }
  StudyId AnyId() { return StudyId{static_cast<int64_t>(rng_.Below(12))}; }
  TrialNumber AnyNumber() {
    return TrialNumber{static_cast<int64_t>(rng_.Below(30))};
  }
  RequestKey AnyKey(const std::string& method) {
    if (rng_.Below(3) != 0) return {};
    return {absl::StrCat("r", rng_.Below(200)), method, rng_.Below(2)};
  }
  ListOptions AnyList(const std::vector<std::string>& orders,
                      const std::vector<std::string>& filters) {
    ListOptions options;
    options.page_size = static_cast<int>(rng_.Below(30)) + 1;
    options.order_by = orders[rng_.Below(orders.size())];
    options.filter = filters[rng_.Below(filters.size())];
    return options;
  }

  // ---- Comparisons ----

  static void ExpectSame(const absl::Status& real, const absl::Status& fake) {
    EXPECT_EQ(real.code(), fake.code()) << real << " vs " << fake;
  }
  static void ExpectSame(const absl::StatusOr<StoredStudy>& real,
                         const absl::StatusOr<StoredStudy>& fake) {
    ExpectSame(real.status(), fake.status());
    if (!real.ok() || !fake.ok()) return;
    EXPECT_EQ(real->id, fake->id);
    EXPECT_THAT(real->study, EqualsProto(fake->study));
  }
  static void ExpectSame(const absl::StatusOr<v1::Trial>& real,
                         const absl::StatusOr<v1::Trial>& fake) {
    ExpectSame(real.status(), fake.status());
    if (!real.ok() || !fake.ok()) return;
    EXPECT_THAT(*real, EqualsProto(*fake));
  }
  static void ExpectSame(const std::vector<v1::Trial>& real,
                         const std::vector<v1::Trial>& fake) {
    ASSERT_EQ(real.size(), fake.size());
    for (size_t i = 0; i < real.size(); ++i) {
      EXPECT_THAT(real[i], EqualsProto(fake[i]));
    }
  }

  // ---- Steps ----

  void StudyStep() {
    const std::string name = AnyName();
    switch (rng_.Below(5)) {
      case 0: {
        const v1::Study study = ExampleStudy(AnyStudy());
        const RequestKey key = AnyKey("CreateStudy");
        return ExpectSame(real_->CreateStudy(study, key),
                          fake_.CreateStudy(study, key));
      }
      case 1: {
        const RequestKey key = AnyKey("UpdateStudy");
        const uint64_t label = rng_.Below(3);
        const auto mutation = [label](v1::Study* study) -> absl::Status {
          if (label == 2) return absl::FailedPreconditionError("no");
          (*study->mutable_labels())["l"] = absl::StrCat(label);
          return absl::OkStatus();
        };
        return ExpectSame(real_->UpdateStudy(name, mutation, key),
                          fake_.UpdateStudy(name, mutation, key));
      }
      case 2: {
        if (rng_.Below(4) != 0) return;  // or little would live
        const bool force = rng_.Below(2) == 0;
        const RequestKey key = AnyKey("DeleteStudy");
        return ExpectSame(real_->DeleteStudy(name, "", force, key),
                          fake_.DeleteStudy(name, "", force, key));
      }
      case 3:
        return ExpectSame(real_->GetStudy(name), fake_.GetStudy(name));
      default:
        return ListStudiesStep();
    }
  }

  void ListStudiesStep() {
    ListOptions options =
        AnyList({"", "name desc", "create_time", "create_time desc"},
                {"", "labels.l = 1", "NOT labels.l = 0", "name > studies/s1"});
    do {
      const auto real = real_->ListStudies(options);
      const auto fake = fake_.ListStudies(options);
      ASSERT_THAT(real, IsOk());
      ASSERT_THAT(fake, IsOk());
      EXPECT_EQ(real->next_page_token, fake->next_page_token);
      ASSERT_EQ(real->studies.size(), fake->studies.size());
      for (size_t i = 0; i < real->studies.size(); ++i) {
        ExpectSame(absl::StatusOr<StoredStudy>(real->studies[i]),
                   absl::StatusOr<StoredStudy>(fake->studies[i]));
      }
      options.page_token = real->next_page_token;
    } while (!options.page_token.empty());
  }

  void CreateTrialsStep() {
    const StudyId study = AnyId();
    std::vector<v1::Trial> trials;
    for (uint64_t i = rng_.Below(3); i > 0; --i) {
      trials.push_back(ExampleTrial(rng_.Below(100)));
      SetTimestamp(static_cast<int64_t>(rng_.Below(1000)),
                   trials.back().mutable_lease_expire_time());
    }
    const RequestKey key = AnyKey("SuggestTrials");
    const auto real = real_->CreateTrials(study, trials, key);
    const auto fake = fake_.CreateTrials(study, trials, key);
    ExpectSame(real.status(), fake.status());
    if (real.ok() && fake.ok()) ExpectSame(*real, *fake);
  }

  void UpdateTrialStep() {
    const StudyId study = AnyId();
    const TrialNumber number = AnyNumber();
    const RequestKey key = AnyKey("CompleteTrial");
    const uint64_t kind = rng_.Below(4);
    const auto value = static_cast<double>(rng_.Below(5));
    const auto mutation = [=](v1::Trial* trial) -> absl::Status {
      if (kind == 0) return FieldError("state", "no");
      if (kind == 1) {
        trial->mutable_intermediate()->set_step(static_cast<int64_t>(value));
        return absl::OkStatus();
      }
      SetTimestamp(static_cast<int64_t>(value) * 7, trial->mutable_end_time());
      return SucceedWith(value)(trial);
    };
    ExpectSame(real_->UpdateTrial(study, number, mutation, key),
               fake_.UpdateTrial(study, number, mutation, key));
  }

  void ListTrialsStep() {
    const StudyId study = AnyId();
    ListOptions options =
        AnyList({"", "number desc", "objective", "objective desc", "end_time",
                 "end_time desc", "create_time", "create_time desc"},
                {"", "state = ACTIVE", "objective > 1 AND number < 20",
                 "NOT objective >= 2", "end_time < 2030-01-01T00:00:00Z",
                 "client_id != job-1 AND (late = true OR attempt = 1)"});
    do {
      const auto real = real_->ListTrials(study, options);
      const auto fake = fake_.ListTrials(study, options);
      ASSERT_THAT(real, IsOk());
      ASSERT_THAT(fake, IsOk());
      EXPECT_EQ(real->next_page_token, fake->next_page_token)
          << options.order_by;
      ExpectSame(real->trials, fake->trials);
      options.page_token = real->next_page_token;
    } while (!options.page_token.empty() && !HasFailure());
  }

  void ReadStep() {
    const StudyId study = AnyId();
    const TrialNumber number = AnyNumber();
    ExpectSame(real_->GetTrial(study, number), fake_.GetTrial(study, number));
    EXPECT_EQ(*real_->CountTrials(study), *fake_.CountTrials(study));
    const absl::Time now =
        absl::FromUnixMicros(static_cast<int64_t>(rng_.Below(1000)));
    EXPECT_EQ(real_->ListExpiredLeases(now)->size(),
              fake_.ListExpiredLeases(now)->size());
    const RequestKey key = AnyKey("SuggestTrials");
    const auto real = real_->FindCreatedTrials(key);
    const auto fake = fake_.FindCreatedTrials(key);
    ExpectSame(real.status(), fake.status());
    if (!real.ok() || !fake.ok()) return;
    ASSERT_EQ(real->has_value(), fake->has_value());
    if (real->has_value()) ExpectSame(**real, **fake);
  }

  void ModelStep() {
    const StudyId study = AnyId();
    StoredModel model;
    model.quality.set_model_version(static_cast<int64_t>(rng_.Below(20)));
    model.checkpoint = absl::StrCat(rng_.Below(1000));
    ExpectSame(real_->CreateModel(study, model),
               fake_.CreateModel(study, model));
    const auto real = real_->GetLatestModel(study);
    const auto fake = fake_.GetLatestModel(study);
    ExpectSame(real.status(), fake.status());
    if (!real.ok() || !fake.ok()) return;
    EXPECT_EQ(real->checkpoint, fake->checkpoint);
  }

  void Step() {
    clock_.Advance(absl::Milliseconds(rng_.Below(5)));
    switch (rng_.Below(8)) {
      case 0:
        return StudyStep();
      case 1:
        return CreateTrialsStep();
      case 2:
      case 3:
      case 4:
        return UpdateTrialStep();
      case 5:
        return ListTrialsStep();
      case 6:
        return ReadStep();
      default:
        break;
    }
    if (rng_.Below(10) == 0) {
      const absl::Time before = clock_.Now() - absl::Seconds(2);
      EXPECT_EQ(*real_->DeleteRequestsBefore(before),
                *fake_.DeleteRequestsBefore(before));
    }
    ModelStep();
  }

  TempDir dir_;
  FakeClock clock_;
  Rng rng_{20240502};
  FakeStudyStore fake_{&clock_};
  std::unique_ptr<SqliteStudyStore> real_;
};

TEST_F(RandomOpsTest, RealStoreAnswersAsTheFakeDoes) {
  for (int i = 0; i < 10'000; ++i) {
    Step();
    if (rng_.Below(250) == 0) Reopen();
    ASSERT_FALSE(HasFailure()) << "at step " << i;
  }
}

}  // namespace
}  // namespace cubicml
