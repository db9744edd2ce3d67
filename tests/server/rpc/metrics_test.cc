// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/metrics.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Study StudyWithProgress(const std::string& id) {
  v1::Study study;
  study.set_name("studies/" + id);
  v1::StudyProgress* progress = study.mutable_progress();
  progress->set_trials(10);
  progress->set_active_trials(2);
  progress->set_succeeded_trials(5);
  progress->set_infeasible_trials(1);
  progress->set_baseline_objective(100);
  progress->set_best_objective(125);
  progress->set_speedup(1.25);
  progress->mutable_surrogate()->set_model_version(3);
  progress->mutable_surrogate()->set_kendall_tau(0.8);
  progress->mutable_surrogate()->set_coverage90(0.9);
  progress->mutable_surrogate()->set_rows(6);
  progress->mutable_surrogate()->mutable_create_time()->set_seconds(1700000000);
  return study;
}

size_t CountLines(const std::string& text, absl::string_view prefix) {
  size_t count = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.substr(0, prefix.size()) == prefix) ++count;
  }
  return count;
}

TEST(ServerMetricsTest, CallsAreCountedByMethodAndCode) {
  ServerMetrics metrics;
  metrics.OnRpcDone("GetStudy", absl::StatusCode::kOk, absl::Milliseconds(3));
  metrics.OnRpcDone("GetStudy", absl::StatusCode::kOk, absl::Milliseconds(3));
  metrics.OnRpcDone("GetStudy", absl::StatusCode::kNotFound,
                    absl::Milliseconds(3));
  metrics.OnRpcRejected();
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("cubicml_rpc_requests_total{code=\"OK\",method="
                              "\"GetStudy\"} 2"));
  EXPECT_THAT(text, HasSubstr("cubicml_rpc_requests_total{code=\"NOT_FOUND\","
                              "method=\"GetStudy\"} 1"));
  EXPECT_THAT(
      text,
      HasSubstr("cubicml_rpc_duration_seconds_count{method=\"GetStudy\"} 3"));
  EXPECT_THAT(text, HasSubstr("cubicml_rpc_rejected_total 1"));
}

TEST(ServerMetricsTest, AStudyShowsWhereItStands) {
  ServerMetrics metrics;
  metrics.SetStudies({StudyWithProgress("ads")});
  const std::string text = metrics.Render();
  for (const char* line : {
           "cubicml_trials{state=\"active\",study=\"ads\"} 2",
           "cubicml_trials{state=\"succeeded\",study=\"ads\"} 5",
           "cubicml_trials{state=\"infeasible\",study=\"ads\"} 1",
           "cubicml_trials{state=\"lost\",study=\"ads\"} 2",
           "cubicml_study_baseline_objective{study=\"ads\"} 100",
           "cubicml_study_best_objective{study=\"ads\"} 125",
           "cubicml_study_speedup_ratio{study=\"ads\"} 1.25",
           "cubicml_surrogate_kendall_tau{study=\"ads\"} 0.8",
           "cubicml_surrogate_coverage_ratio{study=\"ads\"} 0.9",
           "cubicml_surrogate_rows{study=\"ads\"} 6",
           "cubicml_surrogate_created_timestamp_seconds{study=\"ads\"} 17",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ServerMetricsTest, EventsAreCounted) {
  ServerMetrics metrics;
  v1::Trial trial;
  trial.set_state(v1::Trial::INFEASIBLE);
  trial.set_reason(v1::Trial::OUT_OF_MEMORY);
  metrics.OnTrialEnded("studies/ads", trial);
  metrics.OnSuggestion("studies/ads", v1::Trial::SEARCH, absl::Seconds(1));
  metrics.OnModelTrained("studies/ads",
                         StudyWithProgress("ads").progress().surrogate());
  metrics.OnModelRefused("studies/ads", absl::InternalError("nan"));
  metrics.OnLeaseExpired("studies/ads");
  metrics.OnCommit(7, absl::Milliseconds(2), 3);
  metrics.OnWriteFailure(absl::InternalError("disk"));
  const std::string text = metrics.Render();
  for (const char* line : {
           "cubicml_trials_ended_total{reason=\"out_of_memory\",state="
           "\"infeasible\",study=\"ads\"} 1",
           "cubicml_suggestions_total{source=\"search\",study=\"ads\"} 1",
           "cubicml_suggestion_duration_seconds_count 1",
           "cubicml_surrogate_training_duration_seconds_count 1",
           "cubicml_surrogate_refused_total{study=\"ads\"} 1",
           "cubicml_leases_expired_total{study=\"ads\"} 1",
           "cubicml_commit_duration_seconds_count 1",
           "cubicml_commit_group_size_sum 7",
           "cubicml_commit_queue_depth 3",
           "cubicml_write_failures_total 1",
           "cubicml_build_info{version=",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ServerMetricsTest, BeyondTheBoundStudiesShareOneLabel) {
  ServerMetrics metrics(/*max_studies=*/3);
  for (int i = 0; i < 100; ++i) {
    metrics.OnLeaseExpired(absl::StrCat("studies/s", i));
  }
  const std::string text = metrics.Render();
  EXPECT_EQ(CountLines(text, "cubicml_leases_expired_total{"), 4u);
  EXPECT_THAT(text,
              HasSubstr("cubicml_leases_expired_total{study=\"other_studies\"} "
                        "97"));
}

TEST(ServerMetricsTest, ADeletedStudyLeavesNoSeriesAndMakesRoom) {
  ServerMetrics metrics(/*max_studies=*/1);
  metrics.SetStudies({StudyWithProgress("old")});
  metrics.OnLeaseExpired("studies/old");
  metrics.SetStudies({StudyWithProgress("new")});
  const std::string text = metrics.Render();
  EXPECT_THAT(text, Not(HasSubstr("study=\"old\"")));
  EXPECT_THAT(text,
              HasSubstr("cubicml_trials{state=\"active\",study=\"new\"}"));
}

TEST(ServerMetricsTest, SourcesAreReadWhenAsked) {
  ServerMetrics metrics;
  double depth = 1;
  metrics.AddSource("cubicml_rpc_queue_depth", "Calls.",
                    [&depth] { return depth; });
  EXPECT_THAT(metrics.Render(), HasSubstr("cubicml_rpc_queue_depth 1"));
  depth = 5;
  EXPECT_THAT(metrics.Render(), HasSubstr("cubicml_rpc_queue_depth 5"));
  metrics.ForgetSources();
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("cubicml_rpc_queue_depth")));
}

}  // namespace
}  // namespace cubicml
