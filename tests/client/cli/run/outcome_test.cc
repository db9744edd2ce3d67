// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/outcome.h"

#include <signal.h>

#include <filesystem>

#include "client/cli/run/oom_killer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

JobEvidence Evidence(bool by_signal, int code) {
  JobEvidence evidence;
  evidence.end.by_signal = by_signal;
  evidence.end.code = code;
  evidence.output.metrics["qps"].Add(100);
  return evidence;
}

Outcome Judge(const JobEvidence& evidence) {
  return JudgeJob(ExampleStudy(), evidence, Aggregate::kLast);
}

TEST(OutcomeTest, AGoodEndWithAMeasurementSucceeds) {
  JobEvidence evidence = Evidence(false, 0);
  evidence.output.metrics["memory"].Add(7);
  evidence.output.metrics["undeclared"].Add(7);
  const Outcome outcome = Judge(evidence);
  EXPECT_EQ(outcome.state, v1::Trial::SUCCEEDED);
  EXPECT_EQ(outcome.metrics,
            (std::map<std::string, double>{{"qps", 100}, {"memory", 7}}));
}

TEST(OutcomeTest, TheMetricsFileCountsBeforeTheOutput) {
  JobEvidence evidence = Evidence(false, 0);
  evidence.file_metrics["qps"].Add(5);
  EXPECT_EQ(Judge(evidence).metrics.at("qps"), 5);
}

TEST(OutcomeTest, AGoodEndWithoutAMeasurementIsNone) {
  JobEvidence evidence = Evidence(false, 0);
  evidence.output.metrics.clear();
  const Outcome outcome = Judge(evidence);
  EXPECT_EQ(outcome.state, v1::Trial::INFEASIBLE);
  EXPECT_EQ(outcome.reason, v1::Trial::NO_MEASUREMENT);
  EXPECT_THAT(outcome.detail, HasSubstr("qps"));
}

TEST(OutcomeTest, ABadEndIsACrash) {
  const Outcome exit = Judge(Evidence(false, 3));
  EXPECT_EQ(exit.state, v1::Trial::INFEASIBLE);
  EXPECT_EQ(exit.reason, v1::Trial::CRASH);
  EXPECT_EQ(exit.detail, "exit code 3");
  const Outcome signal = Judge(Evidence(true, SIGSEGV));
  EXPECT_EQ(signal.reason, v1::Trial::CRASH);
  EXPECT_THAT(signal.detail, HasSubstr("Segmentation fault"));
}

TEST(OutcomeTest, ABadEndAfterAMessageIsOutOfMemory) {
  JobEvidence evidence = Evidence(false, 1);
  evidence.output.out_of_memory = "CUDA out of memory";
  const Outcome outcome = Judge(evidence);
  EXPECT_EQ(outcome.reason, v1::Trial::OUT_OF_MEMORY);
  EXPECT_EQ(outcome.detail, "exit code 1: CUDA out of memory");
}

TEST(OutcomeTest, AJobThatRecoveredFromTheMessageSucceeds) {
  JobEvidence evidence = Evidence(false, 0);
  evidence.output.out_of_memory = "CUDA out of memory, using less";
  EXPECT_EQ(Judge(evidence).state, v1::Trial::SUCCEEDED);
}

TEST(OutcomeTest, AKillIsOutOfMemoryOnlyWhenTheKernelDidIt) {
  for (JobEvidence evidence :
       {Evidence(true, SIGKILL), Evidence(false, 128 + SIGKILL)}) {
    EXPECT_EQ(Judge(evidence).reason, v1::Trial::CRASH);
    evidence.kernel_killed_for_memory = true;
    EXPECT_EQ(Judge(evidence).reason, v1::Trial::OUT_OF_MEMORY);
  }
}

TEST(OutcomeTest, ALauncherThatTellsOfAKillCountsAsKilled) {
  JobEvidence evidence = Evidence(false, 1);
  evidence.kernel_killed_for_memory = true;
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::CRASH);
  evidence.output.killed_process = "exitcode: -9";
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::OUT_OF_MEMORY);
  evidence.kernel_killed_for_memory = false;
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::CRASH);
}

TEST(OutcomeTest, AKillInTheJobsGroupCountsWhateverTheExitCode) {
  JobEvidence evidence = Evidence(false, 1);
  evidence.group_killed_for_memory = true;
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::OUT_OF_MEMORY);
  EXPECT_THAT(Judge(evidence).detail, HasSubstr("out-of-memory killer"));
  evidence.end.code = 0;
  EXPECT_EQ(Judge(evidence).state, v1::Trial::SUCCEEDED);
}

TEST(OutcomeTest, AnExitCodeMayMeanOutOfMemory) {
  JobEvidence evidence = Evidence(false, 12);
  evidence.out_of_memory_exit_codes = {12};
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::OUT_OF_MEMORY);
}

TEST(OutcomeTest, WhoIsToldToStopSaysNothingAboutTheConfiguration) {
  JobEvidence interrupted = Evidence(true, SIGTERM);
  interrupted.end.interrupted_by = SIGTERM;
  JobEvidence told = Evidence(false, 0);
  told.end.told_to_stop = true;
  told.output.metrics.clear();
  // By somebody else, who did not tell us; a shell says 128 + 15.
  const JobEvidence other = Evidence(true, SIGTERM);
  const JobEvidence shell = Evidence(false, 128 + SIGTERM);
  for (const JobEvidence& evidence : {interrupted, told, other, shell}) {
    EXPECT_EQ(Judge(evidence).state, v1::Trial::ABANDONED);
    EXPECT_EQ(Judge(evidence).reason, v1::Trial::INTERRUPTED);
  }
}

TEST(OutcomeTest, WhatWasMeasuredBeforeTheServiceStoppedTheJobCounts) {
  JobEvidence told = Evidence(true, SIGTERM);
  told.end.told_to_stop = true;
  EXPECT_EQ(Judge(told).state, v1::Trial::SUCCEEDED);
  EXPECT_EQ(Judge(told).metrics.at("qps"), 100);
  told.end.interrupted_by = SIGTERM;
  EXPECT_EQ(Judge(told).state, v1::Trial::ABANDONED);
}

TEST(OutcomeTest, ATimeoutIsToldAsOne) {
  JobEvidence evidence = Evidence(true, SIGTERM);
  evidence.end.timed_out = true;
  EXPECT_EQ(Judge(evidence).reason, v1::Trial::TIMEOUT);
  EXPECT_EQ(Judge(evidence).metrics.at("qps"), 100);
}

TEST(MetricsFileTest, ObjectsArraysAndLinesAreRead) {
  for (const char* text :
       {R"({"qps": 3, "note": "x"})", R"([{"qps": 1}, {"qps": 3}])",
        "{\"qps\": 1}\n\n{\"qps\": 3}\n"}) {
    CUBICML_ASSERT_OK_AND_ASSIGN(auto metrics, ParseMetricsFile(text));
    EXPECT_THAT(metrics["qps"].Get(Aggregate::kLast), Optional(3.0)) << text;
  }
  EXPECT_THAT(
      ParseMetricsFile("{\"qps\": 1}\nx\n"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
  EXPECT_THAT(ParseMetricsFile("[1]"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A file system with the counters of the kernel's killer.
class OomKillCountsTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = dir_.path() + path;
    std::filesystem::create_directories(
        std::filesystem::path(whole).parent_path());
    WriteFileOrDie(whole, text);
  }
  bool HasGrownBy(const std::string& path, const std::string& text) {
    const OomKillCounts before = OomKillCounts::Read(dir_.path());
    Write(path, text);
    const OomKillCounts after = OomKillCounts::Read(dir_.path());
    group_has_grown_ = after.GroupHasGrownSince(before);
    return after.HasGrownSince(before);
  }
  TempDir dir_;
  bool group_has_grown_ = false;
};

TEST_F(OomKillCountsTest, WithoutCountersNothingIsKnown) {
  EXPECT_FALSE(HasGrownBy("/proc/self/cgroup", "nonsense\n"));
}

TEST_F(OomKillCountsTest, TheGroupOfVersion2IsWatched) {
  Write("/proc/self/cgroup", "0::/job\n");
  Write("/sys/fs/cgroup/job/memory.events", "oom 1\noom_kill 4\n");
  EXPECT_FALSE(
      HasGrownBy("/sys/fs/cgroup/job/memory.events", "oom 9\noom_kill 4\n"));
  EXPECT_TRUE(
      HasGrownBy("/sys/fs/cgroup/job/memory.events", "oom 9\noom_kill 5\n"));
  EXPECT_TRUE(group_has_grown_);
}

TEST_F(OomKillCountsTest, TheGroupOfVersion1IsWatched) {
  Write("/proc/self/cgroup", "5:cpu:/x\n9:memory:/job\n");
  Write("/sys/fs/cgroup/memory/job/memory.oom_control",
        "under_oom 0\noom_kill 0\n");
  EXPECT_TRUE(HasGrownBy("/sys/fs/cgroup/memory/job/memory.oom_control",
                         "under_oom 0\noom_kill 1\n"));
}

TEST_F(OomKillCountsTest, TheMachineIsWatched) {
  Write("/proc/vmstat", "nr_free_pages 5\noom_kill 7\n");
  EXPECT_TRUE(HasGrownBy("/proc/vmstat", "nr_free_pages 5\noom_kill 8\n"));
  EXPECT_FALSE(group_has_grown_);
}

}  // namespace
}  // namespace cubicml
