// SPDX-License-Identifier: Apache-2.0

#include "predictor/constraint_check.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/expression_text.h"
#include "tests/predictor/space_text.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSpace[] = R"(
    parameters {name: "tp" integer {values: [1, 2, 4, 8]}}
    parameters {name: "mode" category {values {string_value: "ddp"}
                                       values {string_value: "fsdp"}}}
    parameters {name: "bits" category {values {int64_value: 8}
                                       values {int64_value: 16}}}
    parameters {name: "layers" repeat: 3
                category {values {string_value: "full"}
                          values {string_value: "none"}}}
    context {name: "gpus" type: INTEGER}
    context {name: "kind" type: STRING optional: true}
    )";

absl::Status Check(const std::string& expression) {
  v1::Study study = ReadStudy(kSpace);
  study.add_constraints()->set_expression(expression);
  return CheckNewConstraints(study);
}

void ExpectRefused(const std::string& expression, const std::string& why) {
  const absl::Status status = Check(expression);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
      << expression;
  EXPECT_EQ(FieldNamedBy(status), "constraints[0].expression") << expression;
}

TEST(ConstraintCheckTest, WhatIsMeantPasses) {
  for (const char* expression :
       {"tp = gpus", "gpus > 1", "mode != 'fsdp' OR tp > 1", "'ddp' = mode",
        "mode NOT IN ('ddp', 'fsdp')", "bits = 8", "kind = 'anything'",
        "vec_count(layers, 'full') <= 2", "layers != '[\"a\"]'",
        "lower(mode) = 'DDP'", "mode || 'x' = 'ddpx'",
        "mode = 'DDP' COLLATE NOCASE", "CASE mode WHEN 'x' THEN 1 ELSE 0 END",
        "kind IS NULL OR tp < 4", "tp IS NOT NULL", "NULLIF(tp, tp)"}) {
    EXPECT_THAT(Check(expression), IsOk()) << expression;
  }
}

TEST(ConstraintCheckTest, AConstantIsRefused) {
  for (const char* expression : {"1", "1 = 0", "'tp' > 1", "NULL"}) {
    ExpectRefused(expression, "names no parameter and no context field");
  }
}

TEST(ConstraintCheckTest, ATextThatIsNoneOfTheValuesIsRefused) {
  for (const char* expression :
       {"mode != 'fsat'", "mode = 'fsat' OR tp > 1", "NOT MODE == 'fsat'",
        "(tp > 1 AND \"mode\" <> 'fsat')", "'fsat' IS NOT mode",
        "mode IN ('ddp', 'fsat')", "tp > 1 OR mode NOT IN ('fsat')",
        "iif(mode = 'fsat', tp > 1, tp < 8)"}) {
    ExpectRefused(expression,
                  "compares mode with the string \"fsat\", which is none of "
                  "its values: the string \"ddp\", the string \"fsdp\"");
  }
  ExpectRefused("vec_count(layers, 'ful') <= 2", "compares layers with");
  ExpectRefused("bits = '8'", "the integer 8, the integer 16");
}

TEST(ConstraintCheckTest, AnActivityThatComparesWithNoValueIsRefused) {
  v1::Study study = ReadStudy(
      absl::StrCat(kSpace,
                   "parameters {name: 'x' integer {max: 4} active_if: \"mode = "
                   "'fsat'\"}"));
  EXPECT_EQ(FieldNamedBy(CheckNewConstraints(study)),
            "parameters[4].active_if");
}

TEST(ConstraintCheckTest, WhatIsNeitherTrueNorFalseIsRefused) {
  ExpectRefused("tp % 3", "\"tp % 3\" is neither true nor false for tp = 2");
  ExpectRefused("tp * 2 - gpus", "neither true nor false");
  ExpectRefused("gpus + 1", "neither true nor false; compare it");
  ExpectRefused("mode", "neither true nor false");
  ExpectRefused("vec_count(layers, 'full')", "neither true nor false");
}

TEST(ConstraintCheckTest, TablesStandBesideExpressions) {
  v1::Study study = ReadStudy(absl::StrCat(kSpace, R"(
      constraints {table {columns: "tp" columns: "gpus"
                          rows {values {int64_value: 1}
                                values {int64_value: 8}}}}
      constraints {expression: "tp <= gpus"})"));
  EXPECT_THAT(CheckNewConstraints(study), IsOk());
  study.mutable_constraints(1)->set_expression("gpus - tp * 3");
  EXPECT_EQ(FieldNamedBy(CheckNewConstraints(study)),
            "constraints[1].expression");
}

TEST(ConstraintCheckTest, AStudyThatIsBadOtherwiseIsRefusedAsEver) {
  EXPECT_EQ(FieldNamedBy(Check("tp * (")), "constraints[0].expression");
  EXPECT_EQ(FieldNamedBy(CheckNewConstraints(v1::Study())), "parameters");
}

TEST(TextComparisonTest, NamesAndTextsStandBesideEachOther) {
  const auto comparisons = FindTextComparisons("a = 'it''s' AND 'x' != \"B\"");
  ASSERT_THAT(comparisons, IsOk());
  ASSERT_EQ(comparisons->size(), 2u);
  EXPECT_EQ((*comparisons)[0].name, "a");
  EXPECT_EQ((*comparisons)[0].text, "it's");
  EXPECT_EQ((*comparisons)[1].name, "b");
  EXPECT_EQ((*comparisons)[1].text, "x");
  const auto none = FindTextComparisons("a < 'x' AND b || 'x' = 'y' || c");
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(*none, IsEmpty());
}

}  // namespace
}  // namespace cubicml
