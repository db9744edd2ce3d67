// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/program_test_support.h"

namespace cubicml {

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = "tests/golden/" + name;
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    WriteFileOrDie(path, text);
  }
  ASSERT_TRUE(std::filesystem::exists(path))
      << path << " is made by UPDATE_GOLDEN=1";
  EXPECT_EQ(text, ReadFileOrDie(path)) << "UPDATE_GOLDEN=1 accepts the change";
}

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

using CommandLineTest = ProgramTest;

constexpr char kStudyFile[] = R"(
objectives: [{metric: qps, goal: maximize}]
metrics: [{name: memory}]
parameters:
  - {name: batch, type: integer, min: 1, max: 1000, default: 64}
  - {name: mode, type: category, values: [plain, fused]}
context: [{name: rows, type: integer, default: 1000}]
)";

TEST_F(CommandLineTest, HelpTeaches) {
  const Result help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  ExpectGolden("cli_help.txt", help.out);
  ExpectGolden("cli_help_run.txt", Run({"run", "--help"}).out);
  ExpectGolden("cli_help_study_create.txt",
               Run({"study", "create", "--help"}).out);
}

TEST_F(CommandLineTest, TheVersionIsToldOnStandardOutput) {
  const Result version = Run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, StartsWith("cubicml "));
}

TEST_F(CommandLineTest, WrongCommandLinesAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"nonsense"},
      {"study"},
      {"study", "create"},
      {"suggest", "example", "--count", "0"},
      {"-o", "xml", "study", "list"},
      {"--timeout", "soon", "study", "list"},
      {"run", "--study", "example"},
      {"run", "--", "true"},
      {"study", "list", "--", "true"},
      {"study", "get", "Not A Study"},
      {"complete", "example"},
      {"study", "create", "/no/such/file.yaml"}};
  for (const std::vector<std::string>& words : wrong) {
    const Result result = Run(words);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(words) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("cubicml: "));
  }
}

TEST_F(CommandLineTest, ExitCodesTellWhatWentWrong) {
  EXPECT_EQ(Run({"study", "get", "missing"}).code, 3);
  CreateExample();
  service_.FailNext("GetStudy", {grpc::Status(grpc::INTERNAL, "broken")});
  EXPECT_EQ(Run({"study", "get", "example"}).code, 1);
  service_.FailNext("DeleteStudy", {grpc::Status(grpc::FAILED_PRECONDITION,
                                                 "trials are active")});
  EXPECT_EQ(Run({"study", "delete", "example"}).code, 5);
  service_.SetMaxTrials(0);
  const Result none = Run({"suggest", "example"});
  EXPECT_EQ(none.code, 6);
  EXPECT_THAT(none.err, HasSubstr("EXHAUSTED: everything has been tried"));
  StopServer();
  const Result away = Run({"study", "list"});
  EXPECT_EQ(away.code, 4);
  EXPECT_THAT(away.err, HasSubstr(environment_["CUBICML_SERVER"]));
}

TEST_F(CommandLineTest, TheServerOptionCountsBeforeTheEnvironment) {
  const std::string address = environment_["CUBICML_SERVER"];
  environment_["CUBICML_SERVER"] = "127.0.0.1:1";
  EXPECT_EQ(Run({"--server", address, "study", "list"}).code, 0);
  EXPECT_EQ(Run({"study", "list", "--server", address}).code, 0);
  EXPECT_EQ(Run({"study", "list"}).code, 4);
}

TEST_F(CommandLineTest, AStudyLivesFromAFileToItsDeletion) {
  WriteFileOrDie(dir_.PathOf("My_Study.yaml"), kStudyFile);
  const std::string file = dir_.PathOf("My_Study.yaml");
  const Result checked = Run({"study", "create", file, "--validate-only"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(Run({"study", "get", "my-study"}).code, 3);
  const Result created = Run({"study", "create", file});
  EXPECT_EQ(created.code, 0);
  EXPECT_EQ(created.out, "study\nmy-study\n");
  EXPECT_THAT(created.err, HasSubstr("created studies/my-study"));
  const Result again = Run({"study", "create", file});  // the same once more
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("studies/my-study exists already"),
                               Not(HasSubstr("created"))));
  const Result other = Run({"study", "create", "-", "--id", "my-study"},
                           absl::StrCat(kStudyFile, "labels: {team: ads}\n"));
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.err, AllOf(HasSubstr("exists with another definition"),
                               HasSubstr("`cubicml study update my-study -`")));
  EXPECT_EQ(Run({"study", "create", "-", "--id", "other"}, kStudyFile).code, 0);

  const Result get = Run({"study", "get", "my-study"});
  EXPECT_THAT(get.out,
              AllOf(HasSubstr("id: my-study"), HasSubstr("name: batch")));
  const Result list = Run({"study", "list", "-o", "json"});
  EXPECT_EQ(Json::parse(list.out).size(), 2u);
  ExpectGolden("cli_study_list.txt", Run({"study", "list"}).out);

  const Result updated =
      Run({"study", "update", "my-study", "-"}, "display_name: Better\n");
  EXPECT_EQ(updated.code, 0) << updated.err;
  EXPECT_THAT(updated.out, HasSubstr("display_name: Better"));
  EXPECT_EQ(Run({"study", "update", "my-study", "-"},
                "objectives: [{metric: loss, goal: minimize}]\n")
                .code,
            2);
  EXPECT_EQ(Run({"study", "delete", "my-study"}).code, 0);
  EXPECT_EQ(Run({"study", "get", "my-study"}).code, 3);
}

TEST_F(CommandLineTest, AStudyWithTrialsIsDeletedOnPurposeOnly) {
  CreateExample();
  Run({"suggest", "example", "--count", "2"});
  const Result refused = Run({"study", "delete", "example"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("studies/example has 2 trials"),
                    HasSubstr("--force"), HasSubstr("trials export example")));
  EXPECT_EQ(service_.calls("DeleteStudy"), 0);
  EXPECT_EQ(Run({"study", "delete", "example", "--force"}).code, 0);
  EXPECT_EQ(Run({"study", "get", "example"}).code, 3);
}

TEST_F(CommandLineTest, TheBestIsComparedWithTheBaselineKnobByKnob) {
  CreateExample();
  EXPECT_THAT(Run({"best", "example", "--compare-baseline"}).err,
              HasSubstr("no trial has succeeded yet"));
  Run({"suggest", "example"});
  Run({"suggest", "example", "--fix", "layers=full,none"});
  Run({"complete", "example/2", "--metric", "qps=123"});
  const Result table = Run({"best", "example", "--compare-baseline"});
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out,
            "knob       baseline  best\n"
            "batch      64        2\n"
            "layers[1]  full      none\n");
  EXPECT_THAT(table.err, HasSubstr("example/2 is the best"));
  const Json json = Json::parse(
      Run({"best", "example", "--compare-baseline", "-o", "json"}).out);
  EXPECT_EQ(json["trial"], "studies/example/trials/2");
  EXPECT_EQ(json["differences"][0]["best"], 2);
}

TEST_F(CommandLineTest, AComparisonKnowsTheBaselineOfItsContext) {
  CreateExample();
  Run({"suggest", "example"});  // fills a page
  Run({"suggest", "example", "--context", "rows=5"});
  Run({"suggest", "example", "--context", "rows=5"});
  Run({"complete", "example/3", "--metric", "qps=123"});
  EXPECT_EQ(Run({"best", "example", "--compare-baseline", "-o", "csv"}).out,
            "knob,baseline,best\nbatch,64,3\n");
}

// The study, with two knobs that it gained; one is conditional.
v1::UpdateStudyRequest GainKnobs() {
  v1::UpdateStudyRequest request;
  *request.mutable_study() = ExampleStudy();
  request.mutable_update_mask()->add_paths("parameters");
  v1::Parameter* threads = request.mutable_study()->add_parameters();
  threads->set_name("threads");
  threads->mutable_integer()->set_min(1);
  threads->mutable_integer()->set_max(8);
  *request.mutable_study()->add_parameters() = *threads;
  v1::Parameter* fusion = request.mutable_study()->mutable_parameters(
      request.study().parameters_size() - 1);
  fusion->set_name("fusion");
  fusion->set_active_if("mode = 'fused'");
  return request;
}

TEST_F(CommandLineTest, KnobsThatAStudyGainedAreTheirDefaultsInOldTrials) {
  CreateExample();
  Run({"suggest", "example"});
  Run({"suggest", "example"});
  Run({"complete", "example/2", "--metric", "qps=123"});
  const v1::UpdateStudyRequest request = GainKnobs();
  v1::Study response;
  ASSERT_TRUE(service_.UpdateStudy(nullptr, &request, &response).ok());
  EXPECT_EQ(Run({"best", "example", "--compare-baseline", "-o", "csv"}).out,
            "knob,baseline,best\nbatch,64,2\n");
}

TEST_F(CommandLineTest, WithoutABaselineTheActiveDefaultsAreCompared) {
  CreateExample();
  const v1::UpdateStudyRequest request = GainKnobs();
  v1::Study response;
  ASSERT_TRUE(service_.UpdateStudy(nullptr, &request, &response).ok());
  Run({"suggest", "example", "--mode", "exploit"});
  Run({"complete", "example/1", "--metric", "qps=123"});
  const Result result = Run({"best", "example", "--compare-baseline"});
  EXPECT_THAT(result.err, HasSubstr("has the baseline's configuration"));
}

TEST_F(CommandLineTest, AComparisonHasOneShapeAndOneBest) {
  CreateExample();
  const Result none =
      Run({"best", "example", "--compare-baseline", "-o", "json"});
  EXPECT_EQ(none.code, 0);
  const Json json = Json::parse(none.out);
  EXPECT_TRUE(json["trial"].is_null());
  EXPECT_EQ(json["differences"], Json::array());
  EXPECT_EQ(Run({"best", "example", "--compare-baseline", "--limit=2"}).code,
            2);
  Run({"study", "create", "-", "--id", "two"},
      "objectives: [{metric: qps, goal: maximize}, "
      "{metric: memory, goal: minimize}]\n"
      "parameters: [{name: batch, type: integer, min: 1, max: 8}]\n");
  const Result two = Run({"best", "two", "--compare-baseline"});
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.err, HasSubstr("studies/two has 2 objectives"));
}

TEST_F(CommandLineTest, ARefusalOfTheServerIsFoundInTheFile) {
  service_.FailNext("CreateStudy",
                    {FieldStatus("parameters[1].category", "is too small")});
  WriteFileOrDie(dir_.PathOf("s.yaml"), kStudyFile);
  const Result result = Run({"study", "create", dir_.PathOf("s.yaml")});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("s.yaml:6: "));
}

TEST_F(CommandLineTest, ATrialLivesFromItsSuggestionToItsCompletion) {
  CreateExample();
  const Result suggested =
      Run({"suggest", "example", "--count", "2", "--context", "rows=5", "--fix",
           "mode=fused", "--client-id", "me"});
  EXPECT_EQ(suggested.code, 0) << suggested.err;
  ExpectGolden("cli_suggest.txt", suggested.out);
  EXPECT_EQ(service_.suggestions()[0].context().at("rows").int64_value(), 5);
  const Result beat = Run({"heartbeat", "example/1", "--client-id", "me",
                           "--metric", "qps=3", "--step", "4", "-o", "json"});
  EXPECT_EQ(Json::parse(beat.out)["should_stop"], false);
  EXPECT_EQ(service_.heartbeats()[0].intermediate().step(), 4);
  const Result done =
      Run({"complete", "example/1", "--metric", "qps=123", "--metric",
           "memory=5", "--client-id", "me", "-o", "json"});
  EXPECT_EQ(Json::parse(done.out)["metrics"]["qps"], 123);
  EXPECT_EQ(service_.completions()[0].client_id(), "me");
  EXPECT_EQ(Run({"complete", "example/2", "--state", "infeasible", "--reason",
                 "out_of_memory", "--detail", "CUDA"})
                .code,
            0);
  EXPECT_EQ(service_.completions()[1].reason(), v1::Trial::OUT_OF_MEMORY);
  ExpectGolden("cli_trials_list.txt", Run({"trials", "list", "example"}).out);
  ExpectGolden("cli_trials_list.csv",
               Run({"trials", "list", "example", "-o", "csv"}).out);
  ExpectGolden("cli_best.yaml", Run({"best", "example", "-o", "yaml"}).out);
  EXPECT_EQ(Run({"cancel", "example/2"}).code, 0);
  EXPECT_EQ(Run({"trials", "get", "example/9"}).code, 3);
}

TEST_F(CommandLineTest, OptionsMayStandBeforeTheArgument) {
  CreateExample();
  const std::vector<std::vector<std::string>> lines = {
      {"suggest", "--context", "rows=5", "example"},
      {"suggest", "--fix", "mode=fused", "--label", "a=b", "example"},
      {"heartbeat", "--metric", "qps=1", "example/1"},
      {"complete", "--metric", "qps=1", "--metric", "memory=2", "example/1"},
      {"best", "--context", "rows=5", "example"},
      {"predict", "--param", "batch=8", "--context", "rows=5", "example"}};
  for (std::vector<std::string> words : lines) {
    // Behind the argument, so that it is not the last word.
    words.insert(words.end(), {"--timeout", "20s"});
    const Result result = Run(words);
    EXPECT_EQ(result.code, 0) << ::testing::PrintToString(words) << result.err;
  }
  ASSERT_EQ(service_.completions().size(), 1u);
  EXPECT_EQ(service_.completions()[0].metrics().size(), 2u);
}

TEST_F(CommandLineTest, MistakesInValuesAreToldBeforeTheServiceIsAsked) {
  CreateExample();
  const Result result = Run({"suggest", "example", "--context", "rowz=5"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean 'rows'?"));
  EXPECT_EQ(service_.calls("SuggestTrials"), 0);
  EXPECT_EQ(Run({"complete", "example/1", "--metric", "qps=nan"}).code, 2);
  EXPECT_EQ(Run({"complete", "example/1", "--state", "great"}).code, 2);
}

TEST_F(CommandLineTest, APredictionIsATable) {
  CreateExample();
  const Result result = Run({"predict", "example", "--param", "batch=8"});
  EXPECT_EQ(result.code, 0);
  ExpectGolden("cli_predict.txt", result.out);
  EXPECT_THAT(result.err, HasSubstr("works with probability 0.75; model 3"));
}

TEST_F(CommandLineTest, AHistoryGoesOutAndComesBack) {
  CreateExample();
  Run({"suggest", "example", "--count", "2"});
  Run({"complete", "example/1", "--metric", "qps=10"});
  const std::string csv = dir_.PathOf("trials.csv");
  const std::string lines = dir_.PathOf("trials.jsonl");
  EXPECT_EQ(Run({"trials", "export", "example", "--file", csv}).code, 0);
  EXPECT_EQ(Run({"trials", "export", "example", "--file", lines}).code, 0);
  for (const std::string& file : {csv, lines}) {
    const Result imported =
        Run({"trials", "import", "example", file, "-o", "json"});
    EXPECT_EQ(imported.code, 0) << imported.err;
    const Json json = Json::parse(imported.out);
    EXPECT_EQ(json["imported"], 1);
    EXPECT_EQ(json["skipped"], 1);  // the one that still runs
  }
  ASSERT_EQ(service_.imported().size(), 2u);
  EXPECT_EQ(service_.imported()[0].metrics().at("qps"), 10);
  // The same trial, whichever kind of file it was in.
  EXPECT_EQ(service_.imported()[0].labels().at("import"),
            service_.imported()[1].labels().at("import"));
}

TEST_F(CommandLineTest, TheLabelOfAnImportIsForEver) {
  // Services store it: a change of the text that it stands for needs another
  // version, and must still know these.
  CreateExample();
  EXPECT_EQ(Run({"trials", "import", "example", "-"},
                "batch,layers,rows,qps,status\n8,\"full,none\",5,1.5,ok\n"
                "8,\"full,none\",5,1.5,ok\n9,full,,,oom\n")
                .code,
            0);
  std::vector<std::string> labels;
  for (const v1::Trial& trial : service_.imported()) {
    labels.push_back(trial.labels().at("import"));
  }
  EXPECT_THAT(labels, ElementsAre("1-10f61557321aebec", "1-10f61857321af105",
                                  "1-95cee9f862c62d0e"));
}

TEST_F(CommandLineTest, ATableOfASpreadsheetIsImported) {
  CreateExample();
  const Result result = Run({"trials", "import", "example", "-"},
                            "\xEF\xBB\xBF"
                            "batch,qps\r\n8,1\r\n\r\n");
  EXPECT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(service_.imported().size(), 1u);
  EXPECT_EQ(service_.imported()[0].metrics().at("qps"), 1);
}

TEST_F(CommandLineTest, RefusedTrialsAreToldWithTheirLine) {
  CreateExample();
  const Result result =
      Run({"trials", "import", "example", "-"}, "batch,qps\n8,1\n2000,2\n");
  EXPECT_EQ(result.code, 7);
  EXPECT_THAT(result.err, HasSubstr("-:3: parameters.batch: at most 1000"));
  EXPECT_EQ(
      Run({"trials", "import", "example", "-", "--dry-run"}, "batch,qps\nx,1\n")
          .code,
      2);
}

TEST_F(CommandLineTest, ReplayIsAProgramOfItsOwn) {
  EXPECT_EQ(Run({"-o", "json", "replay"}).code, 2);
}

}  // namespace
}  // namespace cubicml
