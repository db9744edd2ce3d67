// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/command_template.h"

#include "client/cli/run/job_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TemplateValues ExampleValues() {
  TemplateValues values;
  values.active = MakeValues({{"tp", 8}, {"lr", 0.001}});
  values.active["sharding"] =
      MakeValue(std::vector<std::string>{"full", "grad", "none"});
  values.parameters = values.active;
  values.parameters["vpp"] = MakeValue(1);  // not active
  values.words = {{"trial", "studies/x/trials/7"}, {"params_file", "/p.json"}};
  return values;
}

std::vector<std::string> Expand(std::vector<std::string> words) {
  const absl::StatusOr<CommandTemplate> command =
      CommandTemplate::Parse(std::move(words));
  EXPECT_THAT(command, IsOk());
  const absl::StatusOr<std::vector<std::string>> expanded =
      command->Expand(ExampleValues());
  EXPECT_THAT(expanded, IsOk());
  return expanded.ok() ? *expanded : std::vector<std::string>();
}

TEST(CommandTemplateTest, PlaceholdersBecomeValues) {
  EXPECT_THAT(
      Expand({"train", "--tp={tp}", "{lr}{tp}", "{trial}", "@{params_file}"}),
      ElementsAre("train", "--tp=8", "0.0018", "studies/x/trials/7",
                  "@/p.json"));
}

TEST(CommandTemplateTest, VectorsAreListsOrElements) {
  EXPECT_THAT(Expand({"{sharding}", "{sharding[1]}"}),
              ElementsAre("full,grad,none", "grad"));
}

TEST(CommandTemplateTest, FlagsNameEveryActiveParameter) {
  EXPECT_THAT(Expand({"train", "{flags}", "x"}),
              ElementsAre("train", "--lr=0.001", "--sharding=full,grad,none",
                          "--tp=8", "x"));
}

TEST(CommandTemplateTest, AKnobThatIsNotActiveHasItsDefault) {
  EXPECT_THAT(Expand({"{vpp}"}), ElementsAre("1"));
}

TEST(CommandTemplateTest, OtherBracesAreLeftAlone) {
  for (const char* word :
       {R"({"a": {"b": 1}})", "{print $1}", "{}", "{", "}", "}}", "{1}",
        "{a b}", "{tp", "{tp[x]}", "{tp[-1]}", "a}}b"}) {
    EXPECT_THAT(Expand({word}), ElementsAre(word));
  }
}

TEST(CommandTemplateTest, DoubledBracesAreLiteral) {
  EXPECT_THAT(Expand({"{{tp}}", "{{", "${{HOME}}/{tp}"}),
              ElementsAre("{tp}", "{", "${HOME}/8"));
}

TEST(CommandTemplateTest, AnEmptyWordStays) {
  EXPECT_THAT(Expand({"train", ""}), ElementsAre("train", ""));
}

TEST(CommandTemplateTest, UnknownPlaceholdersAreRefusedWithASuggestion) {
  CUBICML_ASSERT_OK_AND_ASSIGN(const CommandTemplate command,
                               CommandTemplate::Parse({"{shardin}"}));
  const absl::string_view names[] = {"tp", "sharding"};
  EXPECT_THAT(command.Check(names),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'sharding'?")));
}

TEST(CommandTemplateTest, AVariableIsNamedByItsWholeName) {
  const absl::string_view names[] = {"tp", "tp_comm"};
  const auto left_out = [&](const char* script) {
    return CommandTemplate::Parse({"sh", "-c", script})->FindLeftOut(names);
  };
  EXPECT_THAT(left_out("a $CUBICML_PARAM_TP_COMM"), ElementsAre("tp"));
  EXPECT_THAT(left_out("a ${CUBICML_PARAM_TP}"), ElementsAre("tp_comm"));
  EXPECT_THAT(left_out("a $CUBICML_PARAM_TP_COMM,$CUBICML_PARAM_TP"),
              ElementsAre());
  EXPECT_THAT(left_out("a $MY_CUBICML_PARAMS_FILE"),
              ElementsAre("tp", "tp_comm"));
}

TEST(CommandTemplateTest, WhatCannotBeFilledIsRefused) {
  const auto error = [](const char* word) {
    return std::string(CommandTemplate::Parse({word})
                           ->Expand(ExampleValues())
                           .status()
                           .message());
  };
  EXPECT_THAT(error("{sharding[3]}"), HasSubstr("sharding has 3 values"));
  EXPECT_THAT(error("{tp[0]}"), HasSubstr("tp is not a vector"));
  EXPECT_THAT(error("{pp}"), HasSubstr("no value for {pp}"));
  EXPECT_THAT(CommandTemplate::Parse({"a{flags}"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(JobFilesTest, TheEnvironmentHasOnlyThisJobsParameters) {
  const std::vector<std::string> merged = MergeEnvironment(
      {"PATH=/bin", "CUBICML_PARAM_OLD=1", "CUBICML_TRIAL=outer", "EMPTY="},
      {{"CUBICML_TRIAL", "t"}, {"CUBICML_PARAM_TP", "8"}});
  EXPECT_THAT(merged,
              UnorderedElementsAre("PATH=/bin", "EMPTY=", "CUBICML_TRIAL=t",
                                   "CUBICML_PARAM_TP=8"));
}

TEST(JobFilesTest, AFolderIsGoneWithItsJob) {
  const TempDir dir;
  std::string path;
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(const JobFolder folder,
                                 JobFolder::Create(dir.path()));
    path = folder.PathOf("params.json");
    CUBICML_EXPECT_OK(WriteParametersFile(path, ExampleValues().active));
    EXPECT_EQ(ReadFileOrDie(path),
              "{\n  \"lr\": 0.001,\n  \"sharding\": [\n    \"full\",\n"
              "    \"grad\",\n    \"none\"\n  ],\n  \"tp\": 8\n}\n");
  }
  EXPECT_EQ(ReadFileIfThere(path), std::nullopt);
}

}  // namespace
}  // namespace cubicml
