// SPDX-License-Identifier: Apache-2.0
//
// The programs of this folder against the real server.

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/running_program.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kStudyFile[] = R"(
objectives: [{metric: qps, goal: maximize, unit: samples/s}]
metrics: [{name: memory}]
parameters:
  - {name: tp, type: integer, values: [1, 2, 4, 8], scale: log, default: 1}
  - {name: pp, type: integer, values: [1, 2, 4, 8], scale: log, default: 1}
  - {name: vpp, type: integer, min: 1, max: 4, active_if: "pp > 1"}
  - {name: sharding, type: category, values: [full, grad, none], repeat: 2}
context: [{name: gpus, type: integer, default: 8}]
constraints: ["gpus % (tp * pp) = 0"]
settings: {seed: 1, initial_trials: 3}
)";

class RealServerTest : public ::testing::Test {
 protected:
  RealServerTest() { StartServer(0); }

  void StartServer(int port) {
    CUBICML_ASSERT_OK_AND_ASSIGN(
        server_, ServerProcess::Start({.db_path = dir_.PathOf("test.db"),
                                       .log_path = dir_.PathOf("log"),
                                       .port = port}));
    environment_["CUBICML_SERVER"] = server_->address();
    environment_["XDG_CACHE_HOME"] = dir_.PathOf("cache");
  }

  std::unique_ptr<RunningProgram> Start(std::vector<std::string> words,
                                        const std::string& input = "") {
    words.insert(words.begin(), CUBICML_PROGRAM);
    return std::make_unique<RunningProgram>(words, environment_, input);
  }
  // Standard output of a command that must succeed.
  std::string Run(const std::vector<std::string>& words,
                  const std::string& input = "") {
    const auto program = Start(words, input);
    EXPECT_EQ(program->Wait(), 0) << program->err();
    messages_ = program->err();
    return program->out();
  }
  void CreateStudy() {
    Run({"study", "create", "-", "--id", "megatron"}, kStudyFile);
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  std::map<std::string, std::string> environment_;
  std::string messages_;
};

TEST_F(RealServerTest, TheExampleFindsTheMinimum) {
  RunningProgram example({CUBICML_EXAMPLE, server_->address(), "40"}, {});
  EXPECT_EQ(example.Wait(), 0) << example.err();
  EXPECT_THAT(example.out(), HasSubstr("studies/minimise-quadratic/trials/"));
  const size_t at = example.out().find("loss=") + 5;
  // (2, -0.5) and its like: near the best of 189 points after 40 trials.
  EXPECT_LE(std::stod(example.out().substr(at)), 4.0) << example.out();
}

TEST_F(RealServerTest, AStudyIsTunedByRun) {
  CreateStudy();
  Run({"run", "--study", "megatron", "--trials", "6", "--", "/bin/sh", "-c",
       "echo qps=$(( 100 * {tp} + {pp} )) memory={vpp} {sharding[1]}"});
  EXPECT_THAT(messages_, HasSubstr("trial 1: qps 101 (baseline)"));
  EXPECT_THAT(messages_, HasSubstr("over baseline)"));
  const Json best =
      Json::parse(Run({"best", "megatron", "--limit", "1", "-o", "json"}));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_GE(best[0]["metrics"]["qps"], 101);
  const Json trials =
      Json::parse(Run({"trials", "list", "megatron", "-o", "json"}));
  EXPECT_EQ(trials.size(), 6u);
  for (const Json& trial : trials) {
    EXPECT_EQ(trial["state"], "SUCCEEDED");
    EXPECT_EQ(trial["parameters"].contains("vpp"),
              trial["parameters"]["pp"] > 1);
  }
}

TEST_F(RealServerTest, AJobIsComparedWithTheBaselineOfItsOwnContext) {
  CreateStudy();
  const auto run = [this](const std::string& gpus, const std::string& trials,
                          const std::string& qps) {
    Run({"run", "--study", "megatron", "--context", "gpus=" + gpus, "--trials",
         trials, "--", "/bin/sh", "-c", "echo qps=" + qps + " memory={tp}"});
  };
  run("8", "1", "10");
  EXPECT_THAT(messages_, HasSubstr("trial 1: qps 10 (baseline)"));
  run("16", "3", "100");
  EXPECT_THAT(messages_, HasSubstr("trial 2: qps 100 (baseline)"));
  EXPECT_THAT(messages_, HasSubstr("trial 3: qps 100 (+0.0 % over baseline)"));
  run("8", "1", "20");
  EXPECT_THAT(messages_, HasSubstr("trial 5: qps 20 (+100.0 % over baseline)"));
  // 8 is the default.
  Run({"run", "--study", "megatron", "--", "/bin/sh", "-c",
       "echo qps=30 memory={tp}"});
  EXPECT_THAT(messages_, HasSubstr("trial 6: qps 30 (+200.0 % over baseline)"));
}

TEST_F(RealServerTest, ManyTrialsNeedTheServer) {
  CreateStudy();
  server_.reset();
  const auto one =
      Start({"run", "--study", "megatron", "--server-wait", "0.1s",
             "--baseline", "tp=1", "--", "/bin/sh", "-c", "echo ran {tp}"});
  EXPECT_EQ(one->Wait(), 0) << one->err();
  EXPECT_THAT(one->out(), HasSubstr("ran"));
  const auto many =
      Start({"run", "--study", "megatron", "--trials", "3", "--server-wait",
             "0.1s", "--", "/bin/sh", "-c", "echo ran {tp}"});
  EXPECT_EQ(many->Wait(), 4) << many->err();
  EXPECT_THAT(many->out(), Not(HasSubstr("ran")));
}

// The server of the README is started in the background one line above.
TEST_F(RealServerTest, ACommandCanWaitForAServerThatStarts) {
  CreateStudy();
  const int port = server_->port();
  server_.reset();
  const auto list = Start({"--wait", "study", "list", "-o", "json"});
  // By when this one has given up, the other would have, too.
  const auto hasty = Start({"study", "list"});
  EXPECT_EQ(hasty->Wait(), 4) << hasty->err();
  StartServer(port);
  EXPECT_EQ(list->Wait(), 0) << list->err();
  EXPECT_THAT(list->out(), HasSubstr("megatron"));
}

// The commands of the first block of shell below a heading of docs/cli.md.
// CTest runs tests in the root of the sources.
std::vector<std::string> CommandsBelow(const std::string& heading) {
  const std::string document = ReadFileOrDie("docs/cli.md");
  const size_t start = document.find("```sh\n", document.find(heading)) + 6;
  const size_t end = document.find("```", start);
  return absl::StrSplit(document.substr(start, end - start), '\n',
                        absl::SkipEmpty());
}

TEST_F(RealServerTest, TheFiltersOfTheDocumentAreAnswered) {
  Run({"study", "create", "-", "--id", "dlrm"}, kStudyFile);
  Run({"run", "--study", "dlrm", "--trials", "2", "--quiet", "--", "/bin/sh",
       "-c", "echo qps={tp}"});
  const std::vector<std::string> commands =
      CommandsBelow("\n## Filters and orders\n");
  ASSERT_GE(commands.size(), 5u);
  const char* path = getenv("PATH");
  environment_["PATH"] = absl::StrCat(
      std::filesystem::path(CUBICML_PROGRAM).parent_path().string(), ":",
      path == nullptr ? "/usr/bin:/bin" : path);
  for (const std::string& command : commands) {
    ASSERT_TRUE(absl::StartsWith(command, "cubicml ")) << command;
    RunningProgram program({"/bin/sh", "-c", command}, environment_);
    EXPECT_EQ(program.Wait(), 0) << command << "\n" << program.err();
  }
}

TEST_F(RealServerTest, AFileIsImportedOnce) {
  CreateStudy();
  const std::vector<std::string> words = {"trials", "import", "megatron",
                                          "-",      "-o",     "json"};
  // Two equal rows are two measurements.
  const std::string file = "tp,pp,sharding,qps\n2,1,full,10\n2,1,full,10\n";
  EXPECT_EQ(Json::parse(Run(words, file))["imported"], 2);
  const auto refused = Start(words, file);
  EXPECT_EQ(refused->Wait(), 5);
  EXPECT_THAT(refused->err(), HasSubstr("2 of 2 trials were imported into "
                                        "studies/megatron before"));
  std::vector<std::string> skip = words;
  skip.insert(skip.end(), {"--existing", "skip"});
  const Json grown = Json::parse(Run(skip, file + "2,1,full,10\n4,1,none,7\n"));
  EXPECT_EQ(grown["imported"], 2);
  EXPECT_EQ(grown["existing"], 2);
  EXPECT_EQ(grown["read"], 4);
  std::vector<std::string> add = words;
  add.insert(add.end(), {"--existing", "add"});
  EXPECT_EQ(Json::parse(Run(add, file))["imported"], 2);
}

TEST_F(RealServerTest, AHistoryMovesToAnotherStudy) {
  CreateStudy();
  Run({"run", "--study", "megatron", "--trials", "3", "--", "/bin/sh", "-c",
       "echo qps={tp}"});
  const std::string csv = Run({"trials", "export", "megatron"});
  Run({"study", "create", "-", "--id", "copy"}, kStudyFile);
  const Json imported =
      Json::parse(Run({"trials", "import", "copy", "-", "-o", "json"}, csv));
  EXPECT_EQ(imported["imported"], 3) << messages_;
  const std::string yaml = Run({"study", "get", "copy"});
  Run({"study", "create", "-", "--id", "third"}, yaml);
}

TEST_F(RealServerTest, MistakesInAStudyFileAreFoundByTheServer) {
  const auto program = Start({"study", "create", "-", "--id", "bad"},
                             "objectives: [{metric: qps, goal: maximize}]\n"
                             "parameters:\n"
                             "  - {name: tp, type: integer, min: 8, max: 1}\n");
  EXPECT_EQ(program->Wait(), 2);
  EXPECT_THAT(program->err(), HasSubstr("standard input:3: "));
}

TEST_F(RealServerTest, AServerThatIsKilledLosesNoResult) {
  CreateStudy();
  const auto program =
      Start({"run", "--study", "megatron", "--server-wait", "3s", "--",
             "/bin/sh", "-c", "echo ready; cat; echo qps=7"});
  program->AwaitOut("ready");
  const int port = server_->port();
  server_->Kill();
  EXPECT_EQ(program->Wait(), 0);
  StartServer(port);
  Run({"run", "--study", "megatron", "--", "/bin/echo", "qps=8"});
  EXPECT_THAT(messages_, HasSubstr("delivered 1 results"));
  const Json trials =
      Json::parse(Run({"trials", "list", "megatron", "-o", "json"}));
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0]["metrics"]["qps"], 7);
  EXPECT_EQ(trials[1]["metrics"]["qps"], 8);
}

TEST_F(RealServerTest, ACancelledTrialStopsItsJob) {
  Run({"study", "create", "-", "--id", "megatron"},
      std::string(kStudyFile) + "\nlabels: {a: b}\n");
  Run({"study", "update", "megatron", "-"},
      "settings: {lease: 1s, seed: 1, "
      "initial_trials: 3}\n");
  const auto program = Start({"run", "--study", "megatron", "--", "/bin/sh",
                              "-c", "echo ready; exec sleep 100"});
  program->AwaitOut("ready");
  Run({"cancel", "megatron/1"});
  EXPECT_EQ(program->Wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace cubicml
