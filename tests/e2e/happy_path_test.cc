// SPDX-License-Identifier: Apache-2.0
//
// Every call, as a launcher, an operator and a researcher make it.

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/e2e_test.h"
#include "tests/support/http_get.h"
#include "tests/support/raw_call.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

class HappyPathTest : public E2eTest {
 protected:
  void SetUp() override { StartServer(); }

  static double Measure(const v1::Trial& trial) {
    const auto& p = trial.parameters();
    return 100 + 10 * std::log2(static_cast<double>(p.at("tp").int64_value())) +
           (p.at("kernel").string_value() == "fused" ? 20 : 0);
  }
};

TEST_F(HappyPathTest, AStudyIsCreatedFoundListedChangedAndDeleted) {
  v1::CreateStudyRequest create;
  create.set_study_id("ads");
  *create.mutable_study() = KnobsStudy();
  create.set_validate_only(true);
  v1::Study created;
  ASSERT_TRUE(Call(&TuningStub::CreateStudy, create, &created).ok());
  v1::ListStudiesResponse list;
  ASSERT_TRUE(
      Call(&TuningStub::ListStudies, v1::ListStudiesRequest(), &list).ok());
  EXPECT_EQ(list.studies_size(), 0);

  create.set_validate_only(false);
  create.set_request_id("r1");
  ASSERT_TRUE(Call(&TuningStub::CreateStudy, create, &created).ok());
  EXPECT_EQ(created.name(), "studies/ads");
  EXPECT_FALSE(created.etag().empty());
  v1::Study again;
  ASSERT_TRUE(Call(&TuningStub::CreateStudy, create, &again).ok());
  EXPECT_EQ(again.etag(), created.etag());
  EXPECT_EQ(GetStudy("studies/ads").parameters_size(), 7);
  ASSERT_TRUE(
      Call(&TuningStub::ListStudies, v1::ListStudiesRequest(), &list).ok());
  EXPECT_EQ(list.studies_size(), 1);

  v1::UpdateStudyRequest update;
  update.mutable_study()->set_name("studies/ads");
  update.mutable_study()->set_display_name("new");
  update.mutable_update_mask()->add_paths("display_name");
  v1::Study updated;
  ASSERT_TRUE(Call(&TuningStub::UpdateStudy, update, &updated).ok());
  EXPECT_EQ(updated.display_name(), "new");
  EXPECT_NE(updated.etag(), created.etag());

  v1::DeleteStudyRequest remove;
  remove.set_name("studies/ads");
  remove.set_etag(created.etag());
  google::protobuf::Empty nothing;
  EXPECT_EQ(Call(&TuningStub::DeleteStudy, remove, &nothing).error_code(),
            grpc::StatusCode::ABORTED);
  remove.set_etag(updated.etag());
  EXPECT_TRUE(Call(&TuningStub::DeleteStudy, remove, &nothing).ok());
  v1::GetStudyRequest get;
  get.set_name("studies/ads");
  EXPECT_EQ(Call(&TuningStub::GetStudy, get, &again).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(HappyPathTest, ATrialIsSuggestedHeldCompletedAndFound) {
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  v1::SuggestTrialsResponse suggested;
  ASSERT_TRUE(Suggest("studies/ads", "job-1", 1, &suggested).ok());
  ASSERT_EQ(suggested.trials_size(), 1);
  const v1::Trial trial = suggested.trials(0);
  EXPECT_EQ(trial.name(), "studies/ads/trials/1");
  EXPECT_EQ(trial.suggestion().source(), v1::Trial::BASELINE);

  v1::HeartbeatRequest heartbeat;
  heartbeat.set_name(trial.name());
  heartbeat.set_client_id("job-1");
  heartbeat.mutable_intermediate()->set_step(10);
  (*heartbeat.mutable_intermediate()->mutable_metrics())["qps"] = 50;
  v1::HeartbeatResponse beat;
  ASSERT_TRUE(Call(&TuningStub::Heartbeat, heartbeat, &beat).ok());
  EXPECT_GT(beat.lease().seconds(), 0);
  EXPECT_FALSE(beat.should_stop());

  ASSERT_TRUE(Complete(trial, 123.5).ok());
  ASSERT_TRUE(Complete(trial, 123.5).ok());  // the same again
  v1::GetTrialRequest get;
  get.set_name(trial.name());
  v1::Trial found;
  ASSERT_TRUE(Call(&TuningStub::GetTrial, get, &found).ok());
  EXPECT_EQ(found.state(), v1::Trial::SUCCEEDED);
  EXPECT_EQ(found.metrics().at("qps"), 123.5);
  EXPECT_EQ(found.intermediate().step(), 10);

  v1::SuggestTrialsResponse next;
  ASSERT_TRUE(Suggest("studies/ads", "job-1", 1, &next).ok());
  v1::CancelTrialRequest cancel;
  cancel.set_name(next.trials(0).name());
  v1::Trial cancelled;
  ASSERT_TRUE(Call(&TuningStub::CancelTrial, cancel, &cancelled).ok());

  v1::ListTrialsRequest list;
  list.set_parent("studies/ads");
  list.set_filter("state = SUCCEEDED AND objective > 100");
  v1::ListTrialsResponse page;
  ASSERT_TRUE(Call(&TuningStub::ListTrials, list, &page).ok());
  ASSERT_EQ(page.trials_size(), 1);
  EXPECT_EQ(page.trials(0).name(), trial.name());
}

TEST_F(HappyPathTest, HistoryIsImportedExportedPagedAndRanked) {
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  std::vector<v1::Trial> history;
  for (int i = 1; i <= 300; ++i) history.push_back(MeasuredTrial(i, 100 + i));
  history[7].mutable_parameters()->erase("tp");  // will be refused
  v1::ImportTrialsResponse imported;
  const grpc::Status status = Import("studies/ads", history, &imported);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(imported.imported(), 299);
  EXPECT_EQ(imported.refused(), 1);
  ASSERT_EQ(imported.refusals_size(), 1);
  EXPECT_EQ(imported.refusals(0).index(), 7);
  EXPECT_THAT(imported.refusals(0).message(), HasSubstr("tp"));

  EXPECT_EQ(Export("studies/ads").size(), 299u);
  v1::ListTrialsRequest list;
  list.set_parent("studies/ads");
  list.set_page_size(100);
  std::set<std::string> names;
  int pages = 0;
  do {
    v1::ListTrialsResponse page;
    ASSERT_TRUE(Call(&TuningStub::ListTrials, list, &page).ok());
    for (const v1::Trial& trial : page.trials()) names.insert(trial.name());
    list.set_page_token(page.next_page_token());
    ++pages;
  } while (!list.page_token().empty());
  EXPECT_EQ(names.size(), 299u);
  EXPECT_EQ(pages, 3);

  v1::ListOptimalTrialsRequest optimal;
  optimal.set_parent("studies/ads");
  v1::ListOptimalTrialsResponse best;
  ASSERT_TRUE(Call(&TuningStub::ListOptimalTrials, optimal, &best).ok());
  ASSERT_GT(best.trials_size(), 0);
  EXPECT_EQ(best.trials(0).metrics().at("qps"), 400);
}

TEST_F(HappyPathTest, AModelIsTrainedPredictsAndFindsSomethingFaster) {
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  v1::PredictRequest predict;
  predict.set_parent("studies/ads");
  v1::Configuration* configuration = predict.add_configurations();
  *configuration->mutable_parameters() = MeasuredTrial(3, 1).parameters();
  v1::PredictResponse predicted;
  EXPECT_EQ(Call(&TuningStub::Predict, predict, &predicted).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);

  for (int i = 0; i < 25; ++i) {
    v1::SuggestTrialsResponse suggested;
    const grpc::Status status = Suggest("studies/ads", "job", 1, &suggested);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(suggested.trials_size(), 1) << suggested.no_trial_detail();
    const v1::Trial& trial = suggested.trials(0);
    ASSERT_LE(trial.parameters().at("tp").int64_value() *
                  trial.parameters().at("pp").int64_value(),
              8);
    ASSERT_TRUE(Complete(trial, Measure(trial)).ok());
  }
  grpc::Status status;
  WaitUntil(absl::Seconds(60), [&] {  // the trainer is at work
    status = Call(&TuningStub::Predict, predict, &predicted);
    return status.error_code() != grpc::StatusCode::FAILED_PRECONDITION;
  });
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(predicted.predictions_size(), 1);
  EXPECT_TRUE(
      std::isfinite(predicted.predictions(0).metrics().at("qps").mean()));
  EXPECT_GT(predicted.surrogate().model_version(), 0);
  EXPECT_GT(GetStudy("studies/ads").progress().speedup(), 1.1);
}

TEST_F(HappyPathTest, HealthReflectionAndMetricsAreThere) {
  const auto channel = server_->NewChannel();
  EXPECT_EQ(CheckHealth(channel, ""), 1);
  EXPECT_EQ(CheckHealth(channel, "cubicml.v1.TuningService"), 1);
  std::vector<std::string> responses;
  ASSERT_TRUE(
      StreamRaw(
          channel,
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          {std::string("\x3A\x00", 2)}, 1, &responses)
          .ok());
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_THAT(responses[0], HasSubstr("cubicml.v1.TuningService"));
  EXPECT_EQ(HttpGet(server_->metrics_port(), "/healthz").code, 200);
  EXPECT_EQ(HttpGet(server_->metrics_port(), "/readyz").code, 200);
  const std::string metrics = HttpGet(server_->metrics_port(), "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("cubicml_build_info"));
  EXPECT_THAT(metrics, HasSubstr("cubicml_database_bytes"));
}

}  // namespace
}  // namespace cubicml
