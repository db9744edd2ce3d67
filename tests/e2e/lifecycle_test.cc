// SPDX-License-Identifier: Apache-2.0
//
// How the process starts, what it refuses to start with, and how it ends.

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/e2e_test.h"
#include "tests/support/http_get.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LifecycleTest : public E2eTest {
 protected:
  // Runs the program to its end and expects it to say `message`.
  void ExpectRefusal(std::vector<std::string> flags, int exit_status,
                     const std::string& message) {
    flags.push_back("--metrics_address=127.0.0.1:0");
    std::string output;
    EXPECT_EQ(RunServerProgram(flags, &output), exit_status) << output;
    EXPECT_THAT(output, HasSubstr(message));
  }
  std::string DbFlag() { return "--db_path=" + dir_.PathOf("cubicml.db"); }
};

TEST_F(LifecycleTest, VersionAndHelpNeedNoDatabase) {
  std::string output;
  EXPECT_EQ(RunServerProgram({"--version"}, &output), 0);
  EXPECT_THAT(output, HasSubstr("cubicmld 0."));
  output.clear();
  EXPECT_EQ(RunServerProgram({"--help"}, &output), 0);
  for (const char* flag :
       {"--db_path", "--listen_address", "--metrics_address", "--log_level"}) {
    EXPECT_THAT(output, HasSubstr(flag));
  }
  EXPECT_FALSE(std::filesystem::exists("cubicml.db"));
}

TEST_F(LifecycleTest, WhatItCannotStartWithIsSaid) {
  ExpectRefusal({DbFlag(), "--no_such_flag"}, 2, "--no_such_flag");
  ExpectRefusal({DbFlag(), "--log_level=loud"}, 2, "--log_level");
  ExpectRefusal({"--listen_address=127.0.0.1:0", "--db_path", ""}, 2,
                "--db_path");
  ExpectRefusal({DbFlag(), "--listen_address=0.0.0.0:0"}, 2,
                "--insecure_listen_anywhere");
  ExpectRefusal({DbFlag(), "--listen_address=nonsense"}, 2, "--listen_address");
  ExpectRefusal({DbFlag(), "--worker_threads=0"}, 2, "--worker_threads");
  ExpectRefusal({"--db_path=" + dir_.PathOf("no/such/folder/x.db"),
                 "--listen_address=127.0.0.1:0"},
                1, "cubicmld: ");
}

TEST_F(LifecycleTest, AFileThatIsNoDatabaseIsLeftAlone) {
  const std::string path = dir_.PathOf("cubicml.db");
  const std::string text(10000, 'x');
  WriteFileOrDie(path, text);
  ExpectRefusal({DbFlag(), "--listen_address=127.0.0.1:0"}, 1, "database");
  EXPECT_EQ(ReadFileOrDie(path), text);
}

TEST_F(LifecycleTest, ASecondServerOnTheSameDatabaseIsRefused) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  ExpectRefusal({DbFlag(), "--listen_address=127.0.0.1:0"}, 1, "cubicml.db");
  EXPECT_EQ(GetStudy("studies/ads").name(), "studies/ads");
  EXPECT_TRUE(CreateStudy("more", KnobsStudy()).ok());
}

TEST_F(LifecycleTest, ATakenPortIsRefusedBeforeAnythingIsServed) {
  StartServer();
  const std::vector<std::string> flags = {
      "--db_path=" + dir_.PathOf("other.db"),
      absl::StrCat("--listen_address=", server_->address())};
  ExpectRefusal(flags, 1, server_->address());
  // Nor does a library say so in its own way.
  std::string output;
  EXPECT_EQ(RunServerProgram(flags, &output), 1);
  EXPECT_THAT(output, HasSubstr("in use"));
  for (const absl::string_view line :
       absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::StartsWith(line, "time=") ||
                absl::StartsWith(line, "cubicmld: "))
        << line;
    EXPECT_THAT(std::string(line), Not(HasSubstr("No address added")));
  }
}

TEST_F(LifecycleTest, SigtermAndSigintDrainAndLeaveOneFile) {
  for (const int signal_number : {SIGTERM, SIGINT}) {
    StartServer();
    const std::string id = absl::StrCat("s", signal_number);
    ASSERT_TRUE(CreateStudy(id, KnobsStudy()).ok());
    server_->Signal(signal_number);
    EXPECT_EQ(server_->Wait(), 0) << ReadFileOrDie(dir_.PathOf("log"));
    EXPECT_FALSE(std::filesystem::exists(dir_.PathOf("cubicml.db-wal")));
  }
  StartServer();
  v1::ListStudiesResponse studies;
  ASSERT_TRUE(
      Call(&TuningStub::ListStudies, v1::ListStudiesRequest(), &studies).ok());
  EXPECT_EQ(studies.studies_size(), 2);
}

TEST_F(LifecycleTest, CallsUnderWayAreFinishedWhileDraining) {
  StartServer();
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ImportTrialsResponse imported;
  const auto writer = stub_->ImportTrials(&context, &imported);
  v1::ImportTrialsRequest request;
  request.set_parent("studies/ads");
  *request.add_trials() = MeasuredTrial(1, 100);
  ASSERT_TRUE(writer->Write(request));
  // The stream has begun when its first trial is there.
  ASSERT_TRUE(WaitUntil(absl::Seconds(30), [this] {
    return GetStudy("studies/ads").progress().trials() == 1;
  }));
  server_->Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil(absl::Seconds(30), [this] {
    return HttpGet(server_->metrics_port(), "/readyz").code == 503;
  }));
  *request.mutable_trials(0) = MeasuredTrial(2, 100);
  EXPECT_TRUE(writer->Write(request));
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(imported.imported(), 2);
  EXPECT_EQ(server_->Wait(), 0);
}

TEST_F(LifecycleTest, ASecondSignalEndsItAtOnceAndLosesNothing) {
  StartServer({"--drain_timeout_s=600"});
  ASSERT_TRUE(CreateStudy("ads", KnobsStudy()).ok());
  grpc::ClientContext context;
  v1::ImportTrialsResponse imported;
  const auto writer = stub_->ImportTrials(&context, &imported);
  v1::ImportTrialsRequest request;
  request.set_parent("studies/ads");
  *request.add_trials() = MeasuredTrial(1, 100);
  ASSERT_TRUE(writer->Write(request));
  ASSERT_TRUE(WaitUntil(absl::Seconds(30), [this] {
    return GetStudy("studies/ads").progress().trials() == 1;
  }));
  server_->Signal(SIGTERM);
  ASSERT_TRUE(WaitUntil(absl::Seconds(30), [this] {
    return HttpGet(server_->metrics_port(), "/readyz").code == 503;
  }));
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), -SIGTERM);
  context.TryCancel();
  EXPECT_FALSE(writer->Finish().ok());
  StartServer();
  EXPECT_EQ(Export("studies/ads").size(), 1u);
}

TEST_F(LifecycleTest, StartingTakesAboutASecond) {
  const SystemClock clock;
  const absl::Duration start = clock.Elapsed();
  StartServer();
  const absl::Duration took = clock.Elapsed() - start;
  RecordProperty("start_ms", static_cast<int>(took / absl::Milliseconds(1)));
  // A loaded test machine is given ten times as long.
  EXPECT_LT(took, absl::Seconds(10));
}

}  // namespace
}  // namespace cubicml
