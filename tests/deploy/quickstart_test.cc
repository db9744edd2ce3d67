// SPDX-License-Identifier: Apache-2.0
//
// deploy/quickstart.sh with real jobs, while things die around it.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/running_program.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class QuickstartTest : public ::testing::Test {
 protected:
  // Three jobs to tune with, some to confirm each.
  std::unique_ptr<RunningProgram> Start(
      const std::string& confirm = "1") const {
    return std::make_unique<RunningProgram>(
        std::vector<std::string>{CUBICML_QUICKSTART, "--bin", CUBICML_PROGRAMS,
                                 "--home", home_, "--trials", "3", "--seconds",
                                 "0.2", "--samples", "512", "--confirm",
                                 confirm},
        std::map<std::string, std::string>{});
  }

  pid_t ServerPid() const {
    pid_t pid = 0;
    std::ifstream(home_ + "/server.pid") >> pid;
    return pid;
  }

  void KillServer() const {
    const pid_t pid = ServerPid();
    ASSERT_GT(pid, 1);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
  }

  const TempDir dir_;
  const std::string home_ = dir_.PathOf("home");
};

double SpeedUp(const std::string& out) {
  for (const absl::string_view line : absl::StrSplit(out, '\n')) {
    std::string text(line);
    if (text.rfind("speed-up", 0) != 0) continue;
    const absl::string_view number = absl::StripSuffix(text, "x");
    double value = 0;
    if (absl::SimpleAtod(number.substr(number.rfind(' ') + 1), &value)) {
      return value;
    }
  }
  return -1;
}

TEST_F(QuickstartTest, GoesOnWhateverIsKilled) {
  auto script = Start();
  script->AwaitErr("3/5");
  script->AwaitErr("4/5");
  KillServer();  // before the first job, or while it runs
  script->AwaitErr("1/3");
  KillServer();
  script->AwaitErr("2/3");
  // Now the script itself; its server stays behind and holds the database.
  script->Signal(SIGKILL);
  EXPECT_EQ(script->Wait(), 128 + SIGKILL);

  script = Start();
  script->AwaitErr("5/5");
  KillServer();
  EXPECT_EQ(script->Wait(), 0) << script->err();
  EXPECT_GT(SpeedUp(script->out()), 0) << script->out();
  EXPECT_THAT(script->err(), HasSubstr(" done)"));
  EXPECT_THAT(script->out(), HasSubstr("\nknob"));
  EXPECT_THAT(script->err(), HasSubstr("studies/dlrm exists already"));
  EXPECT_THAT(script->err(), Not(HasSubstr("created studies/dlrm")));
  // It ends its server.
  EXPECT_NE(kill(ServerPid(), 0), 0);
}

TEST_F(QuickstartTest, WithoutConfirmationSaysSo) {
  const auto script = Start("0");
  EXPECT_EQ(script->Wait(), 0) << script->err();
  EXPECT_THAT(script->err(), HasSubstr("created studies/dlrm"));
  EXPECT_THAT(script->out(),
              AllOf(ContainsRegex("\nbest +[1-9][0-9]* samples/s\n"),
                    ContainsRegex("speed-up +[0-9.]+x +\\(unconfirmed"),
                    HasSubstr("\nknob")));
}

TEST_F(QuickstartTest, StopsWhenItIsTold) {
  const auto script = Start();
  script->AwaitErr("1/3");
  script->Signal(SIGTERM);
  EXPECT_EQ(script->Wait(), 128 + SIGTERM) << script->err();
  EXPECT_NE(kill(ServerPid(), 0), 0);
}

TEST_F(QuickstartTest, SaysWhyTheServerDoesNotStart) {
  std::filesystem::create_directory(home_);
  std::ofstream(home_ + "/cubicml.db") << "not a database at all";
  const auto script = Start();
  EXPECT_EQ(script->Wait(), 1);
  EXPECT_THAT(script->err(), HasSubstr("did not start"));
  EXPECT_THAT(script->err(), HasSubstr("not a database"));
}

TEST_F(QuickstartTest, AMistakeShowsTheUsage) {
  RunningProgram script({CUBICML_QUICKSTART, "--trails", "3"}, {});
  EXPECT_EQ(script.Wait(), 2);
  EXPECT_THAT(script.err(), HasSubstr("--trials N"));
}

}  // namespace
}  // namespace cubicml
