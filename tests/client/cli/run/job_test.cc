// SPDX-License-Identifier: Apache-2.0
//
// Real child processes.

#include "client/cli/run/job.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/run/job_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class JobTest : public ::testing::Test {
 protected:
  absl::StatusOr<JobEnd> Run(std::vector<std::string> command) {
    spec_.command = std::move(command);
    spec_.environment = OwnEnvironment();
    spec_.out = open(dir_.PathOf("out").c_str(), O_WRONLY | O_CREAT, 0600);
    spec_.err = open(dir_.PathOf("err").c_str(), O_WRONLY | O_CREAT, 0600);
    absl::StatusOr<JobEnd> end = RunJob(spec_, &signals_, &clock_);
    close(spec_.out);
    close(spec_.err);
    return end;
  }
  JobEnd RunShell(const std::string& script) {
    const absl::StatusOr<JobEnd> end = Run({"/bin/sh", "-c", script});
    EXPECT_THAT(end, IsOk());
    return end.value_or(JobEnd());
  }
  std::string out() const { return ReadFileOrDie(dir_.PathOf("out")); }
  std::string err() const { return ReadFileOrDie(dir_.PathOf("err")); }

  TempDir dir_;
  SystemClock clock_;
  SignalRelay signals_;
  JobSpec spec_;
};

TEST_F(JobTest, OutputPassesAsItIs) {
  EXPECT_EQ(
      RunShell("printf 'a\\000b\\r\\n\\377no end'; printf err >&2").ExitCode(),
      0);
  EXPECT_EQ(out(), std::string("a\0b\r\n\377no end", 12));
  EXPECT_EQ(err(), "err");
}

TEST_F(JobTest, MuchOutputPassesWhole) {
  std::string seen;
  spec_.on_output = [&](bool is_error, absl::string_view chunk) {
    EXPECT_FALSE(is_error);
    absl::StrAppend(&seen, chunk);
  };
  EXPECT_EQ(RunShell("seq 1 200000").ExitCode(), 0);
  EXPECT_EQ(seen.size(), 1288895u);
  EXPECT_EQ(out(), seen);
}

TEST_F(JobTest, ExitCodesAndSignalsAreTold) {
  EXPECT_EQ(RunShell("exit 7").ExitCode(), 7);
  const JobEnd end = RunShell("kill -SEGV $$");
  EXPECT_TRUE(end.by_signal);
  EXPECT_EQ(end.ExitCode(), 128 + SIGSEGV);
}

TEST_F(JobTest, AProgramThatIsNotThereIsNotFound) {
  EXPECT_THAT(Run({"no-such-program"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-such")));
  EXPECT_THAT(Run({"/etc/passwd"}),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(JobTest, ATimeoutEndsTheJob) {
  spec_.timeout = absl::Milliseconds(200);
  const JobEnd end = RunShell("exec sleep 100");
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.ExitCode(), 128 + SIGTERM);
}

TEST_F(JobTest, AJobThatDoesNotListenIsKilled) {
  spec_.timeout = absl::Milliseconds(200);
  spec_.grace = absl::Milliseconds(200);
  const JobEnd end = RunShell("trap '' TERM; while :; do sleep 0.1; done");
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.ExitCode(), 128 + SIGKILL);
}

TEST_F(JobTest, TheServiceMayStopTheJob) {
  bool ready = false;
  spec_.on_output = [&](bool, absl::string_view) { ready = true; };
  spec_.should_stop = [&] { return ready; };
  const JobEnd end = RunShell(
      "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.1; "
      "done");
  EXPECT_TRUE(end.told_to_stop);
  EXPECT_EQ(end.ExitCode(), 3);
  EXPECT_EQ(out(), "ready\nsaved\n");
}

TEST_F(JobTest, ASignalIsSentOn) {
  signals_.SetHolding(true);
  spec_.on_output = [&](bool, absl::string_view chunk) {
    if (chunk == "ready\n") kill(getpid(), SIGINT);
  };
  const JobEnd end =
      RunShell("trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done");
  EXPECT_EQ(end.interrupted_by, SIGINT);
  EXPECT_EQ(end.ExitCode(), 5);
}

TEST_F(JobTest, AJobThatIsKilledSinceItDidNotStopEndsWithTheFirstSignal) {
  signals_.SetHolding(true);
  spec_.grace = absl::Milliseconds(200);
  spec_.on_output = [&](bool, absl::string_view) { kill(getpid(), SIGINT); };
  const JobEnd end =
      RunShell("trap '' INT; echo ready; while :; do sleep 0.1; done");
  EXPECT_TRUE(end.by_signal);
  EXPECT_EQ(end.code, SIGKILL);
  EXPECT_EQ(end.ExitCode(), 128 + SIGINT);
}

TEST_F(JobTest, AJobThatSomebodyElseKilledEndsAsItWasKilled) {
  signals_.SetHolding(true);
  spec_.on_output = [&](bool, absl::string_view chunk) {
    if (chunk == "ready\n") kill(getpid(), SIGINT);
  };
  const JobEnd end = RunShell(
      "trap 'kill -KILL $$' INT; echo ready; while :; do sleep 0.1; done");
  EXPECT_EQ(end.interrupted_by, SIGINT);
  EXPECT_EQ(end.ExitCode(), 128 + SIGKILL);
}

// To a child, as soon as there is one; 0: none.
int signal_at_birth = 0;

TEST_F(JobTest, ASignalBeforeTheProgramRunsIsTheJobs) {
  ASSERT_EQ(pthread_atfork(nullptr, nullptr,
                           [] {
                             if (signal_at_birth != 0) raise(signal_at_birth);
                           }),
            0);
  signals_.SetHolding(true);
  signal_at_birth = SIGTERM;
  const JobEnd end = RunShell("exec sleep 100");
  signal_at_birth = 0;
  EXPECT_EQ(end.ExitCode(), 128 + SIGTERM);
  EXPECT_EQ(end.interrupted_by, 0);  // we were not told
}

TEST_F(JobTest, NoSignalIsBlockedInAJob) {
  EXPECT_THAT(Run({"grep", "SigBlk", "/proc/self/status"}), IsOk());
  EXPECT_EQ(out(), "SigBlk:\t0000000000000000\n");
}

TEST_F(JobTest, WhatTheJobLeavesBehindIsEnded) {
  const absl::Duration before = clock_.Elapsed();
  EXPECT_EQ(RunShell("sleep 100 & echo $!").ExitCode(), 0);
  EXPECT_LT(clock_.Elapsed() - before, absl::Seconds(60));
  EXPECT_THAT(out(), HasSubstr("\n"));
}

TEST_F(JobTest, AnOrphanThatIsLeftToUsIsReaped) {
  // As in a container, where this process may be the first one.
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  spec_.grace = absl::Minutes(5);
  const absl::Duration before = clock_.Elapsed();
  EXPECT_EQ(RunShell("(sleep 0.3; echo last) & exit 0").ExitCode(), 0);
  EXPECT_EQ(out(), "last\n");
  EXPECT_LT(clock_.Elapsed() - before, absl::Minutes(1));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

// Starts a process that has a zombie in the process group `group`.
pid_t HoldZombieIn(pid_t group) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const pid_t zombie = fork();
    if (zombie == 0) _exit(setpgid(0, group));
    siginfo_t ended;
    waitid(P_PID, static_cast<id_t>(zombie), &ended, WEXITED | WNOWAIT);
    const ssize_t written = write(ready[1], "x", 1);
    (void)written;
    while (true) pause();
  }
  char byte;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return holder;
}

TEST_F(JobTest, AZombieThatNobodyReapsIsNotWaitedForForEver) {
  spec_.grace = absl::Milliseconds(200);
  pid_t holder = -1;
  spec_.on_output = [&](bool, absl::string_view chunk) {
    holder = HoldZombieIn(std::stoi(std::string(chunk)));
    WriteFileOrDie(dir_.PathOf("go"), "");
  };
  const absl::Duration before = clock_.Elapsed();
  EXPECT_EQ(RunShell(absl::StrCat("echo $$; until test -e ", dir_.PathOf("go"),
                                  "; do sleep 0.05; done; exit 4"))
                .ExitCode(),
            4);
  EXPECT_LT(clock_.Elapsed() - before, absl::Seconds(60));
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

TEST_F(JobTest, AProcessThatLeftTheGroupIsNotWaitedFor) {
  const absl::Duration before = clock_.Elapsed();
  EXPECT_EQ(RunShell("setsid sleep 20 & exit 4").ExitCode(), 4);
  EXPECT_LT(clock_.Elapsed() - before, absl::Seconds(15));
}

TEST_F(JobTest, LastWordsAreHeardThoughNobodyReadsThem) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
  std::string seen;
  spec_.on_output = [&](bool, absl::string_view chunk) {
    absl::StrAppend(&seen, chunk);
  };
  // Less than the job's own pipe holds, so that the job ends.
  spec_.command = {"/bin/sh", "-c", "seq 1 10000; echo last"};
  spec_.environment = OwnEnvironment();
  spec_.out = ends[1];
  EXPECT_THAT(RunJob(spec_, &signals_, &clock_), IsOk());
  EXPECT_THAT(seen, EndsWith("10000\nlast\n"));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(JobTest, LastWordsOfChildrenAreHeard) {
  EXPECT_EQ(RunShell("(sleep 0.3; echo last) & exit 0").ExitCode(), 0);
  EXPECT_EQ(out(), "last\n");
}

}  // namespace
}  // namespace cubicml
