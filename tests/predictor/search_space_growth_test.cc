// SPDX-License-Identifier: Apache-2.0
//
// How a living study may change, and what becomes of its trials.

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/search_space.h"
#include "tests/predictor/space_text.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTp[] = "parameters {name: 'tp' integer {values: [1, 2, 4]}} ";
constexpr char kLr[] = "parameters {name: 'lr' number {min: 0.1 max: 1}} ";
constexpr char kStep[] =
    "parameters {name: 'st' number {min: 0.1 max: 0.5 step: 0.1}} ";
constexpr char kMode[] =
    "parameters {name: 'mode' category {values {string_value: 'a'} "
    "values {string_value: 'b'}} repeat: 2} ";
constexpr char kGpus[] =
    "context {name: 'gpus' type: INTEGER} "
    "context {name: 'hw' type: STRING optional: true} ";

std::string Whole() { return absl::StrCat(kTp, kLr, kStep, kMode, kGpus); }

absl::Status CheckGrowth(const std::string& to) {
  return ReadSpace(to)->CheckExtends(*ReadSpace(Whole()));
}

TEST(SearchSpaceGrowthTest, ValuesAndRangesAndConstraintsMayGrow) {
  CUBICML_EXPECT_OK(CheckGrowth(Whole()));
  CUBICML_EXPECT_OK(CheckGrowth(absl::StrCat(
      "parameters {name: 'new' integer {max: 4} default_value "
      "{int64_value: 2}} ",
      "parameters {name: 'mode' category {values {string_value: 'c'} "
      "values {string_value: 'b'} values {string_value: 'a'}} repeat: 2} ",
      "parameters {name: 'tp' integer {min: 1 max: 8}} ",
      "parameters {name: 'lr' number {min: 0.05 max: 2}} ",
      "parameters {name: 'st' number {min: -0.3 max: 0.9 step: 0.1}} ", kGpus,
      "context {name: 'x' type: NUMBER default_value {double_value: 1}}",
      "constraints {expression: 'tp > 1 OR gpus = 1'}")));
  // A step may be dropped.
  CUBICML_EXPECT_OK(CheckGrowth(
      absl::StrCat(kTp, kLr, "parameters {name: 'st' number {min: 0 max: 1}} ",
                   kMode, kGpus)));
}

TEST(SearchSpaceGrowthTest, WhatTrialsMayHaveCannotGo) {
  const auto expect = [](const std::string& to, const std::string& path,
                         const std::string& reason) {
    const absl::Status status = CheckGrowth(to);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr(reason)));
    EXPECT_EQ(FieldNamedBy(status), path) << status;
  };
  expect(absl::StrCat(kTp, kLr, kStep, kGpus), "parameters",
         "\"mode\" is missing");
  expect(absl::StrCat("parameters {name: 'tp' integer {values: [1, 4]}} ", kLr,
                      kStep, kMode, kGpus),
         "parameters[0].integer", "no longer holds the integer 2");
  expect(absl::StrCat("parameters {name: 'tp' number {min: 1 max: 4}} ", kLr,
                      kStep, kMode, kGpus),
         "parameters[0]", "kind of a parameter cannot change");
  expect(absl::StrCat(kTp, "parameters {name: 'lr' number {min: 0.2 max: 1}} ",
                      kStep, kMode, kGpus),
         "parameters[1].number", "no longer holds the number 0.1");
  expect(
      absl::StrCat(kTp, "parameters {name: 'lr' number {min: 0.1 max: 0.9}} ",
                   kStep, kMode, kGpus),
      "parameters[1].number", "no longer holds the number 1");
  expect(absl::StrCat(
             kTp, "parameters {name: 'lr' number {min: 0.1 max: 1 step: 0.1}} ",
             kStep, kMode, kGpus),
         "parameters[1]", "a step cannot be added");
  expect(absl::StrCat(
             kTp, kLr,
             "parameters {name: 'st' number {min: 0.1 max: 0.5 step: 0.2}} ",
             kMode, kGpus),
         "parameters[2].number", "no longer holds the number 0.2");
  expect(absl::StrCat(kTp, kLr, kStep,
                      "parameters {name: 'mode' category {values {string_value:"
                      " 'a'}} repeat: 2} ",
                      kGpus),
         "parameters[3].category", "the string \"b\"");
  expect(absl::StrCat(kTp, kLr, kStep,
                      "parameters {name: 'mode' category {values {string_value:"
                      " 'a'} values {string_value: 'b'}} repeat: 3} ",
                      kGpus),
         "parameters[3].repeat", "cannot change");
  expect(Whole() + "parameters {name: 'new' integer {max: 4}} ",
         "parameters[4].default_value", "is needed for a new parameter");
  expect(Whole() + "context {name: 'x' type: NUMBER}", "context[2].optional",
         "there may be trials without it");
  expect(absl::StrCat(kTp, kLr, kStep, kMode,
                      "context {name: 'gpus' type: INTEGER}"),
         "context", "\"hw\" is missing");
  expect(absl::StrCat(kTp, kLr, kStep, kMode,
                      "context {name: 'gpus' type: INTEGER} "
                      "context {name: 'hw' type: STRING}"),
         "context[1].optional", "must be set");
  expect(absl::StrCat(kTp, kLr, kStep, kMode,
                      "context {name: 'gpus' type: NUMBER} "
                      "context {name: 'hw' type: STRING optional: true}"),
         "context[0].type", "cannot change");
}

TEST(SearchSpaceGrowthTest, TrialsOfOldAreReadWithTheDefaultsOfWhatIsNew) {
  const auto space = ReadSpace(R"(
      parameters {name: "tp" integer {values: [1, 2, 4]}
                  default_value {int64_value: 2}}
      parameters {name: "mode" category {values {string_value: "a"}
                                         values {string_value: "b"}}
                  repeat: 2 default_value {string_value: "b"}}
      parameters {name: "vpp" integer {values: [1, 2]} active_if: "tp > 1"}
      constraints {expression: "tp <> 4"})");
  const Context context = ReadContext(*space);
  const auto read = [&](const std::string& text) {
    return space->ParseStoredPoint(ReadValues(text), context);
  };
  EXPECT_THAT(read(Entry("tp", "int64_value: 2")),
              IsOkAndHolds(ElementsAre(2, 1, 1, 1)));
  const auto inactive = read(Entry("tp", "int64_value: 1"));
  ASSERT_THAT(inactive, IsOk());
  EXPECT_TRUE(std::isnan((*inactive)[3]));
  // What has run stays a measurement, whatever is forbidden since.
  EXPECT_THAT(read(Entry("tp", "int64_value: 4")),
              IsOkAndHolds(ElementsAre(4, 1, 1, 1)));
  EXPECT_THAT(
      read(Entry("tp", "int64_value: 1") + Entry("vpp", "int64_value: 2")),
      IsOkAndHolds(ElementsAre(1, 1, 1, 2)));
  EXPECT_EQ(FieldNamedBy(read(Entry("tp", "int64_value: 3")).status()),
            "parameters.tp");
  EXPECT_EQ(FieldNamedBy(read(Entry("gone", "int64_value: 3")).status()),
            "parameters.gone");
}

}  // namespace
}  // namespace cubicml
