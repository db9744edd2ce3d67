// SPDX-License-Identifier: Apache-2.0
//
// cubicml run with real jobs.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/program_test_support.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class RunCommandTest : public ProgramTest {
 protected:
  RunCommandTest() { CreateExample(); }

  std::vector<std::string> Words(const std::vector<std::string>& options,
                                 const std::string& script) {
    std::vector<std::string> words = {"run", "--study", "example",
                                      "--server-wait", server_wait_};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    return words;
  }
  Result RunScript(const std::string& script,
                   const std::vector<std::string>& options = {}) {
    return Run(Words(options, script));
  }
  v1::CompleteTrialRequest OnlyCompletion() {
    EXPECT_THAT(service_.completions(), SizeIs(1));
    return service_.completions().empty() ? v1::CompleteTrialRequest()
                                          : service_.completions()[0];
  }

  // Results with more memory, or none measured, are not taken as good.
  void BoundMemory(double max) {
    v1::UpdateStudyRequest request;
    request.mutable_study()->set_name("studies/example");
    request.mutable_update_mask()->add_paths("metric_constraints");
    v1::MetricConstraint* constraint =
        request.mutable_study()->add_metric_constraints();
    constraint->set_metric("memory");
    constraint->set_max(max);
    v1::Study response;
    ASSERT_TRUE(service_.UpdateStudy(nullptr, &request, &response).ok());
  }

  // Short where the server is away.
  std::string server_wait_ = "10s";
};

TEST_F(RunCommandTest, AJobIsGivenItsConfigurationAndMeasured) {
  const Result result = RunScript(
      "echo {batch} {layers[1]} $CUBICML_PARAM_BATCH $CUBICML_PARAM_LAYERS "
      "$CUBICML_TRIAL $CUBICML_STUDY {trial}; cat {params_file}; "
      "cmp {params_file} $CUBICML_PARAMS_FILE && echo memory=7 >&2; "
      "echo qps=10; echo qps=30",
      {"--context", "rows=5"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("64 full 64 full,full studies/example/trials/1 example "
                        "studies/example/trials/1\n{"));
  EXPECT_THAT(result.err, HasSubstr("trial 1: qps 30 (baseline)"));
  const v1::CompleteTrialRequest completion = OnlyCompletion();
  EXPECT_EQ(completion.state(), v1::Trial::SUCCEEDED);
  EXPECT_EQ(completion.metrics().at("qps"), 30);
  EXPECT_EQ(completion.metrics().at("memory"), 7);
  EXPECT_FALSE(completion.client_id().empty());
  EXPECT_EQ(service_.suggestions()[0].context().at("rows").int64_value(), 5);
}

TEST_F(RunCommandTest, TheOutputIsTheJobsByteForByte) {
  const Result result =
      RunScript("printf 'qps=1\\n\\000\\377\\r\\n'; printf 'end'", {"--quiet"});
  EXPECT_EQ(result.out, std::string("qps=1\n\0\377\r\nend", 13));
  EXPECT_EQ(result.err, "");
}

TEST_F(RunCommandTest, StandardInputIsTheJobs) {
  EXPECT_EQ(Run(Words({}, "cat; echo qps=1"), "hello").out, "helloqps=1\n");
}

TEST_F(RunCommandTest, FlagsNameEveryParameter) {
  const Result result =
      Run({"run", "--study", "example", "--", "/bin/echo", "qps=1", "{flags}"});
  EXPECT_EQ(result.out, "qps=1 --batch=64 --layers=full,full --mode=plain\n");
}

TEST_F(RunCommandTest, MetricsAreAggregatedAsAsked) {
  RunScript("echo qps=10; echo qps=30; echo qps=20", {"--aggregate", "max"});
  EXPECT_EQ(OnlyCompletion().metrics().at("qps"), 30);
}

TEST_F(RunCommandTest, AnExpressionFindsTheMetric) {
  RunScript("echo 'speed: 17 it/s'", {"--metric-regex", "speed: ([0-9.]+)"});
  EXPECT_EQ(OnlyCompletion().metrics().at("qps"), 17);
}

TEST_F(RunCommandTest, AMetricsFileIsRead) {
  const std::string file = dir_.PathOf("metrics.json");
  WriteFileOrDie(file, R"({"qps": 99})");  // of an earlier job
  RunScript("test ! -e {metrics_file} && echo '{\"qps\": 42}' > {metrics_file}",
            {"--metrics-file", file});
  EXPECT_EQ(OnlyCompletion().metrics().at("qps"), 42);
}

TEST_F(RunCommandTest, AMetricsFileNeedsNoOption) {
  RunScript("echo '{\"qps\": 42}' > $CUBICML_METRICS_FILE");
  EXPECT_EQ(OnlyCompletion().metrics().at("qps"), 42);
}

TEST_F(RunCommandTest, ACrashIsReportedAndItsExitCodePassedOn) {
  const Result result = RunScript("echo qps=1; exit 9");
  EXPECT_EQ(result.code, 9);
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::CRASH);
  EXPECT_EQ(OnlyCompletion().reason_detail(), "exit code 9");
}

TEST_F(RunCommandTest, ASignalIsPassedOnAsShellsDo) {
  EXPECT_EQ(RunScript("kill -ABRT $$").code, 128 + SIGABRT);
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::CRASH);
}

TEST_F(RunCommandTest, ExhaustedMemoryIsRecognised) {
  RunScript(
      "echo 'torch.cuda.OutOfMemoryError: CUDA out of memory.' >&2; "
      "exit 1");
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::OUT_OF_MEMORY);
  EXPECT_THAT(OnlyCompletion().reason_detail(),
              HasSubstr("torch.cuda.OutOfMemoryError"));
}

TEST_F(RunCommandTest, AJobWithoutAMeasurementIsReported) {
  EXPECT_EQ(RunScript("echo nothing").code, 0);
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::NO_MEASUREMENT);
}

TEST_F(RunCommandTest, ATimeoutIsReported) {
  EXPECT_EQ(RunScript("exec sleep 100", {"--timeout", "300ms"}).code,
            128 + SIGTERM);
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::TIMEOUT);
}

TEST_F(RunCommandTest, BeingToldToStopAbandonsTheTrial) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto program = Start(Words({}, "echo ready; exec sleep 100"));
    program->AwaitOut("ready");
    program->Signal(signal);
    EXPECT_EQ(program->Wait(), 128 + signal);
  }
  for (const v1::CompleteTrialRequest& completion : service_.completions()) {
    EXPECT_EQ(completion.state(), v1::Trial::ABANDONED);
    EXPECT_EQ(completion.reason(), v1::Trial::INTERRUPTED);
  }
  EXPECT_THAT(service_.completions(), SizeIs(2));
}

TEST_F(RunCommandTest, ASignalDuringTheReportIsTheLastOfManyTrials) {
  service_.Block("CompleteTrial");
  const auto program = Start(Words({"--trials=3"}, "echo qps=1"));
  service_.AwaitCalls("CompleteTrial", 1);
  program->Signal(SIGTERM);
  service_.Unblock();
  EXPECT_EQ(program->Wait(), 128 + SIGTERM);
  EXPECT_EQ(program->out(), "qps=1\n");
  EXPECT_EQ(service_.calls("SuggestTrials"), 1);
}

TEST_F(RunCommandTest, ASignalBeforeTheJobIsNotSentOnToIt) {
  service_.Block("SuggestTrials");
  const auto program = Start(Words({}, "sleep 0.3; echo qps=1"));
  service_.AwaitCalls("SuggestTrials", 1);
  program->Signal(SIGUSR1);
  service_.Unblock();
  EXPECT_EQ(program->Wait(), 0);
  EXPECT_EQ(OnlyCompletion().state(), v1::Trial::SUCCEEDED);
}

TEST_F(RunCommandTest, AWarningThatEndsTheJobIsNoCrash) {
  const auto program = Start(Words({}, "echo ready; exec sleep 100"));
  program->AwaitOut("ready");
  program->Signal(SIGUSR1);
  EXPECT_EQ(program->Wait(), 128 + SIGUSR1);
  EXPECT_EQ(OnlyCompletion().state(), v1::Trial::ABANDONED);
  EXPECT_EQ(OnlyCompletion().reason(), v1::Trial::INTERRUPTED);
}

TEST_F(RunCommandTest, AJobThatCleansUpDecidesItsExitCode) {
  const auto program = Start(Words(
      {},
      "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; "
      "done"));
  program->AwaitOut("ready");
  program->Signal(SIGTERM);
  EXPECT_EQ(program->Wait(), 0);
  EXPECT_THAT(program->out(), HasSubstr("saved"));
  EXPECT_EQ(OnlyCompletion().state(), v1::Trial::ABANDONED);
}

TEST_F(RunCommandTest, AJobThatMustBeKilledEndsWithTheSignalThatWasSent) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto program = Start(
        Words({},
              "trap 'echo told' TERM INT; echo ready; while :; do sleep 0.1; "
              "done"));
    program->AwaitOut("ready");
    program->Signal(signal);
    program->AwaitOut("told");
    program->Signal(signal);
    EXPECT_EQ(program->Wait(), 128 + signal);
  }
}

TEST_F(RunCommandTest, AJobDoesNotOutliveALauncherThatIsKilled) {
  const std::string pipe = dir_.PathOf("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // The job holds the pipe open as long as it lives.
  const auto program = Start(
      Words({}, absl::StrCat("exec 3>", pipe,
                             "; trap 'echo told >&3; exit 3' TERM; "
                             "echo ready >&3; while :; do sleep 0.1; done")));
  // Without waiting for a job that may never open it.
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::string said;
  char buffer[64];
  const auto read_some = [&] {
    pollfd entry = {reader, POLLIN, 0};
    if (poll(&entry, 1, 60'000) != 1) return false;
    const ssize_t count = read(reader, buffer, sizeof(buffer));
    if (count > 0) said.append(buffer, static_cast<size_t>(count));
    return count > 0;
  };
  ASSERT_TRUE(read_some());
  program->Signal(SIGKILL);
  EXPECT_EQ(program->Wait(), 128 + SIGKILL);
  while (read_some()) continue;
  EXPECT_EQ(said, "ready\ntold\n");
  close(reader);
}

TEST_F(RunCommandTest, TheServiceMayStopTheJob) {
  service_.SetLease(absl::Milliseconds(100));
  service_.RequestStop();
  EXPECT_EQ(RunScript("exec sleep 100").code, 128 + SIGTERM);
  EXPECT_EQ(OnlyCompletion().state(), v1::Trial::ABANDONED);
  EXPECT_GE(service_.calls("Heartbeat"), 1);
}

TEST_F(RunCommandTest, WhatAStoppedJobMeasuredIsReported) {
  service_.SetLease(absl::Milliseconds(100));
  service_.RequestStop();
  EXPECT_EQ(RunScript("echo qps=5; exec sleep 100").code, 128 + SIGTERM);
  EXPECT_EQ(OnlyCompletion().state(), v1::Trial::SUCCEEDED);
  EXPECT_EQ(OnlyCompletion().metrics().at("qps"), 5);
}

TEST_F(RunCommandTest, AProgramThatIsNotThereAbandonsTheTrial) {
  EXPECT_EQ(Run({"run", "--study", "example", "--", "no-such-program"}).code,
            127);
  EXPECT_EQ(Run({"run", "--study", "example", "--", "/etc/passwd"}).code, 126);
  EXPECT_EQ(service_.completions()[0].state(), v1::Trial::ABANDONED);
}

TEST_F(RunCommandTest, MistakesAreToldBeforeAConfigurationIsAskedFor) {
  const Result placeholder = RunScript("echo {batsh}");
  EXPECT_EQ(placeholder.code, 2);
  EXPECT_THAT(placeholder.err, HasSubstr("did you mean 'batch'?"));
  EXPECT_EQ(RunScript("echo {layers[2]}").code, 2);
  EXPECT_EQ(RunScript("true", {"--context", "rowz=1"}).code, 2);
  EXPECT_EQ(RunScript("true", {"--metric-regex", "("}).code, 2);
  EXPECT_EQ(Run({"run", "--study", "missing", "--", "true"}).code, 3);
  EXPECT_EQ(service_.calls("SuggestTrials"), 0);
}

TEST_F(RunCommandTest, WithoutAServerTheJobRunsOnTheRememberedBaseline) {
  RunScript("echo qps=1");
  StopServer();
  server_wait_ = "300ms";
  const Result result =
      RunScript("echo {batch} $CUBICML_PARAM_MODE [$CUBICML_TRIAL]; exit 4");
  EXPECT_EQ(result.code, 4);
  EXPECT_EQ(result.out, "64 plain []\n");
  EXPECT_THAT(result.err, HasSubstr("the job runs on the baseline, untuned"));
}

TEST_F(RunCommandTest, WithoutAServerTheCommandLineMayGiveTheBaseline) {
  StopServer();
  server_wait_ = "300ms";
  const Result given = RunScript("echo {batch}", {"--baseline", "batch=7"});
  EXPECT_EQ(given.code, 0);
  EXPECT_EQ(given.out, "7\n");
  const Result unknown = RunScript("echo {batch}");
  EXPECT_EQ(unknown.code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("pass --baseline batch=VALUE"));
  const Result not_needed = RunScript("echo ran");
  EXPECT_EQ(not_needed.code, 0);
  EXPECT_EQ(not_needed.out, "ran\n");
}

TEST_F(RunCommandTest, ServiceTroubleDoesNotCostTheJob) {
  service_.FailNext("SuggestTrials", {grpc::Status(grpc::INTERNAL, "broken")});
  const Result result = RunScript("echo {batch}");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "64\n");
  EXPECT_THAT(result.err, HasSubstr("on the baseline"));
}

TEST_F(RunCommandTest, AnExhaustedStudyStillRunsTheJob) {
  service_.SetMaxTrials(0);
  EXPECT_EQ(RunScript("echo {batch}").out, "64\n");
}

TEST_F(RunCommandTest, AResultThatCannotBeDeliveredIsDeliveredLater) {
  server_wait_ = "2s";
  const auto program = Start(Words({}, "echo ready; cat; echo qps=33"));
  program->AwaitOut("ready");
  StopServer();
  const int code = program->Wait();
  EXPECT_EQ(code, 0);
  EXPECT_THAT(program->err(), HasSubstr("delivered by the next"));
  EXPECT_THAT(service_.completions(), SizeIs(0));
  RestartServer();
  const Result next = RunScript("echo qps=44");
  EXPECT_THAT(next.err, HasSubstr("delivered 1 results of earlier jobs"));
  ASSERT_THAT(service_.completions(), SizeIs(2));
  EXPECT_EQ(service_.completions()[0].metrics().at("qps"), 33);
  EXPECT_EQ(service_.completions()[1].metrics().at("qps"), 44);
}

TEST_F(RunCommandTest, ATrialWhoseResultIsKeptIsNotRunAgain) {
  // The result and its first delivery fail; then the server is there again,
  // and still takes the trial for one that runs.
  service_.FailNext("CompleteTrial", {grpc::Status(grpc::INTERNAL, "broken"),
                                      grpc::Status(grpc::INTERNAL, "broken")});
  const Result result =
      RunScript("echo batch={batch}; echo qps=33", {"--trials=2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "batch=64\nqps=33\nbatch=2\nqps=33\n");
  EXPECT_THAT(result.err, HasSubstr("delivered 1 results of earlier jobs"));
  EXPECT_THAT(service_.completions(), SizeIs(2));
}

TEST_F(RunCommandTest, ATrialWhoseResultStaysKeptIsNotRunAgainEither) {
  service_.FailNext(
      "CompleteTrial",
      std::vector<grpc::Status>(3, grpc::Status(grpc::INTERNAL, "broken")));
  const Result result = RunScript("echo batch={batch} qps=33", {"--trials=2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "batch=64 qps=33\n");
  EXPECT_THAT(result.err, HasSubstr("no further trial: the result of"));
}

TEST_F(RunCommandTest, TroubleBetweenJobsDoesNotUndoTheirSuccess) {
  service_.FailNext("SuggestTrials",
                    {grpc::Status::OK, grpc::Status(grpc::INTERNAL, "broken")});
  const Result result = RunScript("echo qps=1", {"--trials=2"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("no further trial: "));
}

TEST_F(RunCommandTest, TheWaitForTheServiceHasOneDeadline) {
  server_wait_ = "1s";
  service_.Block("SuggestTrials");
  const SystemClock clock;
  const absl::Duration before = clock.Elapsed();
  const Result result = RunScript("echo {batch}");
  EXPECT_LT(clock.Elapsed() - before, absl::Seconds(20));
  service_.Unblock();
  EXPECT_EQ(result.out, "64\n");
  EXPECT_THAT(result.err, HasSubstr("on the baseline"));
}

TEST_F(RunCommandTest, TheModeIsAskedFor) {
  for (const auto& [word, mode] :
       {std::pair("baseline", v1::SuggestTrialsRequest::REMEASURE_BASELINE),
        std::pair("exploit", v1::SuggestTrialsRequest::EXPLOIT)}) {
    RunScript("echo qps=33", {absl::StrCat("--mode=", word)});
    EXPECT_EQ(service_.suggestions().back().mode(), mode);
  }
}

TEST_F(RunCommandTest, ManyTrialsAreComparedWithTheBaseline) {
  const Result result =
      RunScript("test {batch} = 64 && echo qps=100 || echo qps={batch}00",
                {"--trials", "3"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("trial 1: qps 100 (baseline)"),
                    HasSubstr("trial 2: qps 200 (+100.0 % over baseline)"),
                    HasSubstr("trial 3: qps 300 (+200.0 % over baseline)")));
}

TEST_F(RunCommandTest, ManyTrialsEndWhenEverythingHasBeenTried) {
  service_.SetMaxTrials(2);
  const Result result = RunScript("echo qps=1", {"--trials", "0"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("no further trial"));
  EXPECT_THAT(service_.completions(), SizeIs(2));
}

TEST_F(RunCommandTest, TrialsThatFailAreAPartOfMany) {
  const Result result =
      RunScript("test {batch} = 2 && exit 1; echo qps=1", {"--trials", "3"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("trial 2: CRASH (exit code 1)"));
  EXPECT_EQ(RunScript("exit 6", {"--trials", "2"}).code, 6);
}

TEST_F(RunCommandTest, WhatTheCommandLeavesOutIsToldOnce) {
  EXPECT_THAT(RunScript("echo qps=1").err,
              HasSubstr("note: the command names no parameter: the job finds "
                        "the configuration only in its environment, such as "
                        "$CUBICML_PARAM_BATCH\n"));
  const std::string some = RunScript("echo qps=1 {batch}", {"--trials=2"}).err;
  EXPECT_THAT(some, HasSubstr("note: the command does not name mode, layers: "
                              "the job finds them only in its environment, "
                              "such as $CUBICML_PARAM_MODE\n"));
  EXPECT_EQ(some.find("note:"), some.rfind("note:"));
}

TEST_F(RunCommandTest, ACommandThatTakesTheConfigurationIsNotTold) {
  for (const char* script :
       {"echo qps=1 {batch} {layers[0]} $CUBICML_PARAM_MODE",
        "echo qps=1; cat {params_file}",
        "echo qps=1; cat $CUBICML_PARAMS_FILE"}) {
    EXPECT_THAT(RunScript(script).err, Not(HasSubstr("note:"))) << script;
  }
  EXPECT_THAT(
      Run({"run", "--study=example", "--", "echo", "qps=1", "{flags}"}).err,
      Not(HasSubstr("note:")));
  EXPECT_THAT(
      RunScript("echo qps=1 {batch} {layers}", {"--fix", "mode=plain"}).err,
      Not(HasSubstr("note:")));
  EXPECT_THAT(RunScript("echo qps=1", {"--quiet"}).err,
              Not(HasSubstr("note:")));
}

TEST_F(RunCommandTest, ACommandThatNamesOnlyWhatIsFixedNamesAParameter) {
  EXPECT_THAT(RunScript("echo qps=1 {batch}", {"--fix", "batch=8"}).err,
              HasSubstr("note: the command does not name mode, layers: "));
}

TEST_F(RunCommandTest, ThatNothingSucceededIsToldWithWhatHelps) {
  const Result silent = RunScript("test {batch} = 2 && exit 1; echo nothing",
                                  {"--trials=3", "--quiet"});
  EXPECT_EQ(silent.code, 0);
  EXPECT_THAT(silent.err,
              HasSubstr("no trial succeeded (CRASH 1, NO_MEASUREMENT 2); let "
                        "the job print qps=NUMBER, or pass --metric-regex or "
                        "--metrics-file; `cubicml trials list example"));
}

TEST_F(RunCommandTest, WhatTheServiceRefusesHasNotSucceeded) {
  BoundMemory(10);
  const Result result = RunScript(
      "test {batch} = 3 && exit 3; echo qps=1 memory=99", {"--trials=3"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("no trial succeeded (CRASH 1, "
                                    "METRIC_CONSTRAINT 2); loosen"));
}

TEST_F(RunCommandTest, AResultThatIsNotTakenCountsForNothing) {
  service_.FailNext("CompleteTrial", {grpc::Status(grpc::FAILED_PRECONDITION,
                                                   "the trial has ended")});
  // The service hands the same trial out again.
  const std::string once = dir_.PathOf("once");
  const Result result = RunScript(
      absl::StrCat("test -e ", once, " && exit 5; : > ", once, "; echo qps=1"),
      {"--trials=2"});
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.err, HasSubstr("no trial succeeded (CRASH 1); "));
}

TEST_F(RunCommandTest, TheMetricsThatAreMissingAreNamed) {
  BoundMemory(10);
  const std::string bounded = RunScript("echo qps=1", {"--trials=2"}).err;
  EXPECT_THAT(bounded, HasSubstr("no trial succeeded (NO_MEASUREMENT 2); let "
                                 "the job print memory=NUMBER, or pass"));
  const std::string both = RunScript("echo nothing", {"--trials=2"}).err;
  EXPECT_THAT(both, HasSubstr("print memory=NUMBER and qps=NUMBER, or pass"));
}

TEST_F(RunCommandTest, ABaselineThatIsMeasuredAgainIsThereToCompareWith) {
  const std::string once = dir_.PathOf("once");
  const Result result =
      RunScript(absl::StrCat("test -e ", once, " || { : > ", once,
                             "; exit 1; }; "
                             "echo qps=1"),
                {"--mode=baseline", "--trials=3"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("trial 1: CRASH"),
                                Not(HasSubstr("the baseline failed"))));
}

TEST_F(RunCommandTest, ABaselineThatFailedIsTold) {
  const Result result =
      RunScript("test {batch} = 64 && exit 1; echo qps=1", {"--trials=2"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("the baseline failed (CRASH), so there "
                                    "is nothing to compare with; look at"));
  const Result well =
      RunScript("test {batch} = 3 && exit 1; echo qps=1", {"--trials=2"});
  EXPECT_THAT(well.err, Not(HasSubstr("failed")));
  EXPECT_THAT(RunScript("exit 1").err, Not(HasSubstr("succeeded")));
}

TEST_F(RunCommandTest, AJobsChildrenDoNotOutliveIt) {
  const Result result = RunScript("sleep 100 & echo qps=1 pid $!");
  EXPECT_EQ(result.code, 0);
  const size_t start = result.out.find("pid ") + 4;
  EXPECT_NE(kill(std::stoi(result.out.substr(start)), 0), 0);
}

TEST_F(RunCommandTest, AnUnusableFolderForFilesDoesNotCostTheJob) {
  environment_["TMPDIR"] = dir_.PathOf("missing");
  const Result result = RunScript("cat {params_file}; echo qps=1");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"batch\": 64"));
}

TEST_F(RunCommandTest, OnlyAJobThatNamesAFileNeedsOne) {
  // No file may hold a byte, wherever it is, as on a disk that is full.
  const auto run = [&](const std::string& script) {
    std::vector<std::string> words = Words({}, script);
    words.insert(
        words.begin(),
        {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"",
         CUBICML_PROGRAM});
    RunningProgram program(words, environment_);
    const int code = program.Wait();
    return Result{code, program.out(), program.err()};
  };
  const Result without = run("echo [$CUBICML_PARAMS_FILE] {batch} qps=1");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(without.out, "[] 64 qps=1\n");
  const Result with = run("cat {params_file}");
  EXPECT_EQ(with.code, 1) << with.err;
  ASSERT_THAT(service_.completions(), SizeIs(2));
  EXPECT_EQ(service_.completions()[0].state(), v1::Trial::SUCCEEDED);
  EXPECT_EQ(service_.completions()[1].state(), v1::Trial::ABANDONED);
}

TEST_F(RunCommandTest, TemporaryFilesAreRemoved) {
  const Result result = RunScript("echo qps=1; dirname {params_file}");
  const std::string folder =
      result.out.substr(6, result.out.size() - 7);  // after qps=1\n
  EXPECT_THAT(folder, HasSubstr("cubicml-run-"));
  EXPECT_NE(access(folder.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace cubicml
