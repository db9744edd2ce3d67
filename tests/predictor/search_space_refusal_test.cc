// SPDX-License-Identifier: Apache-2.0
//
// Everything that SearchSpace::Parse refuses, with the path and the reason.

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/search_space.h"
#include "tests/predictor/space_text.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

struct Refusal {
  const char* study;
  const char* path;
  const char* reason;  // part of the message
};

// Two parameters that are in order, so that refusals are of others.
constexpr char kSound[] = R"(
    parameters {name: "tp" integer {values: [1, 2, 4, 8]}}
    parameters {name: "mode" category {values {string_value: "a"}
                                       values {string_value: "b"}}}
    )";

void ExpectRefused(const v1::Study& study, const std::string& path,
                   const std::string& reason) {
  const auto space = SearchSpace::Parse(study);
  ASSERT_THAT(space,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason)))
      << study.DebugString();
  EXPECT_EQ(FieldNamedBy(space.status()), path) << space.status();
  EXPECT_EQ(space.status().message().substr(0, path.size()), path);
}

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesThePathAndTheReason) {
  ExpectRefused(ReadStudy(absl::StrCat(kSound, GetParam().study)),
                GetParam().path, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Names, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {integer {max: 2}}", "parameters[2].name",
                "must be a letter"},
        Refusal{"parameters {name: '2x' integer {max: 2}}",
                "parameters[2].name", "must be a letter"},
        Refusal{"parameters {name: '_x' integer {max: 2}}",
                "parameters[2].name", "must be a letter"},
        Refusal{"parameters {name: 'a b' integer {max: 2}}",
                "parameters[2].name", "must be a letter"},
        Refusal{"parameters {name: 'a\"b' integer {max: 2}}",
                "parameters[2].name", "must be a letter"},
        Refusal{"parameters {name: '\\303\\244' integer {max: 2}}",
                "parameters[2].name", "must be a letter"},
        Refusal{"parameters {name: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaa' integer {max: 2}}",
                "parameters[2].name", "at most 64 bytes"},
        Refusal{"parameters {name: 'TP' integer {max: 2}}",
                "parameters[2].name", "is the name of parameters[0] already"},
        Refusal{"context {name: 'Mode' type: STRING optional: true}",
                "parameters[1].name", "is the name of context[0] already"},
        Refusal{"parameters {name: 'select' integer {max: 2}}",
                "parameters[2].name", "means something else"},
        Refusal{"parameters {name: 'True' integer {max: 2}}",
                "parameters[2].name", "means something else"},
        Refusal{"parameters {name: 'rowid' integer {max: 2}}",
                "parameters[2].name", "means something else"},
        Refusal{"context {name: 'order' type: STRING optional: true}",
                "context[0].name", "choose another name, such as \"order_\""}));

INSTANTIATE_TEST_SUITE_P(
    Integers, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {name: 'x'}", "parameters[2]", "has no domain"},
        Refusal{"parameters {name: 'x' integer {}}", "parameters[2].integer",
                "is empty; give min and max"},
        Refusal{"parameters {name: 'x' integer {min: 4 max: 2}}",
                "parameters[2].integer.max", "must be at least min = 4, got 2"},
        Refusal{"parameters {name: 'x' integer {max: 4 step: -1}}",
                "parameters[2].integer.step", "must be at least 1"},
        Refusal{"parameters {name: 'x' integer {max: 10000}}",
                "parameters[2].integer", "has 10001 values; at most 10000"},
        Refusal{"parameters {name: 'x' integer {max: 65536}}",
                "parameters[2].integer", "raise the step to 7 or more"},
        Refusal{"parameters {name: 'x' integer {min: -9223372036854775808 "
                "max: 9223372036854775807}}",
                "parameters[2].integer.min", "beyond 2^53"},
        Refusal{"parameters {name: 'x' integer {max: 9007199254740993}}",
                "parameters[2].integer.max", "beyond 2^53"},
        Refusal{"parameters {name: 'x' integer {values: [1, 4, 2]}}",
                "parameters[2].integer.values[2]", "must be greater than 4"},
        Refusal{"parameters {name: 'x' integer {values: [1, 1]}}",
                "parameters[2].integer.values[1]", "must be greater than 1"},
        Refusal{
            "parameters {name: 'x' integer {values: [1, 9007199254740993]}}",
            "parameters[2].integer.values[1]", "beyond 2^53"},
        Refusal{"parameters {name: 'x' integer {values: [1] max: 4}}",
                "parameters[2].integer.values", "cannot be given together"},
        Refusal{"parameters {name: 'x' integer {values: [1] step: 4}}",
                "parameters[2].integer.values", "cannot be given together"},
        Refusal{"parameters {name: 'x' integer {max: 4 scale: SCALE_LOG}}",
                "parameters[2].integer.scale", "greater than 0"},
        Refusal{"parameters {name: 'x' integer {values: [-1, 2] "
                "scale: SCALE_LOG}}",
                "parameters[2].integer.scale", "greater than 0"},
        Refusal{"parameters {name: 'x' integer {min: 1 max: 4 scale: 7}}",
                "parameters[2].integer.scale", "is not known"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {name: 'x' number {}}", "parameters[2].number",
                "is empty"},
        Refusal{"parameters {name: 'x' number {min: nan max: 1}}",
                "parameters[2].number.min", "must be finite"},
        Refusal{"parameters {name: 'x' number {max: inf}}",
                "parameters[2].number.max", "must be finite"},
        Refusal{"parameters {name: 'x' number {max: 1 step: nan}}",
                "parameters[2].number.step", "must be finite"},
        Refusal{"parameters {name: 'x' number {min: 1 max: 0.5}}",
                "parameters[2].number.max", "must be at least min = 1"},
        Refusal{"parameters {name: 'x' number {max: 1 step: -0.1}}",
                "parameters[2].number.step", "must be greater than 0"},
        Refusal{"parameters {name: 'x' number {max: 1 step: 1e-5}}",
                "parameters[2].number", "at most 10000 are allowed"},
        Refusal{"parameters {name: 'x' number {min: -1e308 max: 1e308 step: "
                "1e-300}}",
                "parameters[2].number", "at most 10000 are allowed"},
        Refusal{
            "parameters {name: 'x' number {min: 1e16 max: 1.0000000000000004"
            "e16 step: 0.001}}",
            "parameters[2].number.step", "too small beside the bounds"},
        Refusal{"parameters {name: 'x' number {max: 1 scale: SCALE_LOG}}",
                "parameters[2].number.scale", "greater than 0"},
        Refusal{
            "parameters {name: 'x' number {min: -1 max: 1 scale: SCALE_LOG}}",
            "parameters[2].number.scale", "greater than 0"}));

INSTANTIATE_TEST_SUITE_P(
    Categories, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {name: 'x' category {}}",
                "parameters[2].category.values", "is empty"},
        Refusal{"parameters {name: 'x' category {values {}}}",
                "parameters[2].category.values[0]", "has no value"},
        Refusal{"parameters {name: 'x' category {values {string_value: 'a'} "
                "values {string_value: 'a'}}}",
                "parameters[2].category.values[1]", "occurs twice"},
        Refusal{"parameters {name: 'x' category {values {double_value: 0} "
                "values {double_value: -0.0}}}",
                "parameters[2].category.values[1]", "occurs twice"},
        Refusal{"parameters {name: 'x' category {values {string_value: 'a'} "
                "values {int64_value: 1}}}",
                "parameters[2].category.values[1]",
                "must be a string like the values before it, got the integer"},
        Refusal{"parameters {name: 'x' category {values {double_value: nan}}}",
                "parameters[2].category.values[0]", "must be finite"},
        Refusal{"parameters {name: 'x' category {values {int64_value: "
                "9223372036854775807}}}",
                "parameters[2].category.values[0]", "beyond 2^53"},
        Refusal{"parameters {name: 'x' category {values {list_value {}}}}",
                "parameters[2].category.values[0]", "got a list"},
        Refusal{"parameters {name: 'x' category {values {string_value: "
                "'a\\000b'}}}",
                "parameters[2].category.values[0]", "without NUL"}));

INSTANTIATE_TEST_SUITE_P(
    DefaultsAndRepeats, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {name: 'x' integer {max: 4} repeat: -1}",
                "parameters[2].repeat", "must be at least 1"},
        Refusal{"parameters {name: 'x' integer {max: 4} repeat: 999}",
                "parameters[2].repeat", "to 1001 knobs; at most 1000"},
        Refusal{"parameters {name: 'x' integer {max: 4} repeat: 2147483647}",
                "parameters[2].repeat", "at most 1000"},
        Refusal{"parameters {name: 'x' integer {max: 4} default_value {}}",
                "parameters[2].default_value", "has no value"},
        Refusal{"parameters {name: 'x' integer {max: 4} "
                "default_value {double_value: 1}}",
                "parameters[2].default_value",
                "must be an integer, got the number 1"},
        Refusal{"parameters {name: 'x' integer {max: 4} "
                "default_value {int64_value: 5}}",
                "parameters[2].default_value", "5 is outside of 0 to 4"},
        Refusal{"parameters {name: 'x' integer {values: [1, 2, 4]} "
                "default_value {int64_value: 3}}",
                "parameters[2].default_value",
                "3 is not on the grid; the values are 1, 2, 4"},
        Refusal{"parameters {name: 'x' number {max: 1 step: 0.01} "
                "default_value {double_value: 0.505}}",
                "parameters[2].default_value",
                "the nearest values are 0.5 and 0.51"},
        Refusal{"parameters {name: 'x' category {values {string_value: 'a'}} "
                "default_value {string_value: 'c'}}",
                "parameters[2].default_value", "the values are \"a\""},
        Refusal{"parameters {name: 'x' integer {max: 4} "
                "default_value {list_value {values {int64_value: 1}}}}",
                "parameters[2].default_value", "got a list"},
        Refusal{"parameters {name: 'x' integer {max: 4} repeat: 3 "
                "default_value {list_value {values {int64_value: 1}}}}",
                "parameters[2].default_value.list_value",
                "must have repeat = 3 values, got 1"},
        Refusal{
            "parameters {name: 'x' integer {max: 4} repeat: 2 default_value "
            "{list_value {values {int64_value: 1} values {int64_value: 9}}}}",
            "parameters[2].default_value.list_value.values[1]",
            "9 is outside"}));

INSTANTIATE_TEST_SUITE_P(
    Expressions, RefusalTest,
    ::testing::Values(
        Refusal{"parameters {name: 'x' integer {max: 4} active_if: 'y = 1'}",
                "parameters[2].active_if", "no such column: y"},
        Refusal{"parameters {name: 'x' integer {max: 4} active_if: 'x = 1'}",
                "parameters[2].active_if", "no such column: x"},
        Refusal{"parameters {name: 'x' integer {max: 4} active_if: 'late = 1'} "
                "parameters {name: 'late' integer {max: 4}}",
                "parameters[2].active_if", "no such column: late"},
        Refusal{"parameters {name: 'x' integer {max: 4} active_if: ' '}",
                "parameters[2].active_if", "is empty"},
        Refusal{"constraints {}", "constraints[0]", "set expression or table"},
        Refusal{"constraints {expression: ''}", "constraints[0].expression",
                "is empty"},
        Refusal{"constraints {expression: 'tp > 0'} "
                "constraints {expression: 'tpp > 0'}",
                "constraints[1].expression", "no such column: tpp"},
        Refusal{"constraints {expression: 'tp >'}", "constraints[0].expression",
                "syntax error"},
        Refusal{"constraints {expression: 'mode = \"a\"'}",
                "constraints[0].expression", "no such column: a"},
        Refusal{"constraints {expression: 'tp = 1 -- x'}",
                "constraints[0].expression", "holds a comment"},
        Refusal{"constraints {expression: 'tp = 1; SELECT 1'}",
                "constraints[0].expression", "holds a semicolon"},
        Refusal{"constraints {expression: 'tp IN (SELECT 1)'}",
                "constraints[0].expression", "holds a subquery"},
        Refusal{"constraints {expression: 'random() > tp'}",
                "constraints[0].expression", "not authorized"}));

INSTANTIATE_TEST_SUITE_P(
    Tables, RefusalTest,
    ::testing::Values(
        Refusal{"constraints {table {}}", "constraints[0].table.columns",
                "is empty"},
        Refusal{"constraints {table {columns: 'tp'}}",
                "constraints[0].table.rows", "nothing would be valid"},
        Refusal{"constraints {table {columns: 'xx' rows {values {}}}}",
                "constraints[0].table.columns[0]", "is neither a parameter"},
        Refusal{"constraints {table {columns: ['tp', 'tp'] rows {values {} "
                "values {}}}}",
                "constraints[0].table.rows[0].values[0]", "has no value"},
        Refusal{"constraints {table {columns: ['tp', 'tp'] rows {values "
                "{int64_value: 1} values {int64_value: 1}}}}",
                "constraints[0].table.columns[1]", "is a column already"},
        Refusal{"parameters {name: 'x' integer {max: 4} repeat: 2} "
                "constraints {table {columns: 'x' rows {values {}}}}",
                "constraints[0].table.columns[0]", "is a vector"},
        Refusal{"constraints {table {columns: ['tp', 'mode'] rows {values "
                "{int64_value: 1} values {string_value: 'a'}} rows {values "
                "{int64_value: 1}}}}",
                "constraints[0].table.rows[1]",
                "has 1 values; there are 2 columns"},
        Refusal{"constraints {table {columns: 'tp' rows {values {int64_value: "
                "1}} rows {values {string_value: '1'}}}}",
                "constraints[0].table.rows[1].values[0]", "must be an integer"},
        Refusal{"constraints {table {columns: 'tp' rows {values {int64_value: "
                "3}}}}",
                "constraints[0].table.rows[0].values[0]", "not on the grid"},
        Refusal{"context {name: 'hw' type: STRING optional: true} constraints "
                "{table {columns: 'hw' rows {values {int64_value: 3}}}}",
                "constraints[0].table.rows[0].values[0]", "must be a string"}));

INSTANTIATE_TEST_SUITE_P(
    Contexts, RefusalTest,
    ::testing::Values(
        Refusal{"context {name: 'gpus'}", "context[0].type", "is not set"},
        Refusal{"context {name: 'gpus' type: 9}", "context[0].type",
                "is not set"},
        Refusal{"context {type: INTEGER}", "context[0].name", "must be"},
        Refusal{"context {name: 'gpus' type: INTEGER default_value {}}",
                "context[0].default_value", "has no value"},
        Refusal{"context {name: 'gpus' type: INTEGER "
                "default_value {string_value: '8'}}",
                "context[0].default_value",
                "must be an integer, got the string \"8\""},
        Refusal{"context {name: 'x' type: NUMBER default_value {double_value: "
                "inf}}",
                "context[0].default_value", "must be finite"},
        Refusal{"context {name: 'x' type: BOOLEAN default_value {int64_value: "
                "1}}",
                "context[0].default_value", "must be a boolean"}));

INSTANTIATE_TEST_SUITE_P(
    WhatLeavesNothing, RefusalTest,
    ::testing::Values(
        Refusal{"constraints {expression: 'tp > 1'}", "constraints[0]",
                "\"tp > 1\" does not hold for the defaults (tp = 1)"},
        Refusal{"constraints {expression: 'tp > 4'}", "constraints[0]",
                "such as tp = 8"},
        Refusal{"constraints {expression: 'tp > 8'}", "constraints[0]",
                "no configuration of the domains satisfies constraints[0] "
                "(\"tp > 8\")"},
        Refusal{"constraints {expression: 'mode IN (\\'a\\', \\'b\\')'} "
                "constraints {expression: 'tp > 4'} "
                "constraints {expression: 'tp IS NOT NULL'} "
                "constraints {expression: 'tp < 8'}",
                "constraints[1]",
                "constraints[1] (\"tp > 4\") and constraints[3] (\"tp < 8\") "
                "together"},
        Refusal{"constraints {expression: '0'}", "constraints[0]",
                "no configuration"},
        Refusal{"context {name: 'hw' type: STRING default_value {string_value: "
                "'a'}} constraints {table {columns: ['hw', 'tp'] rows {values "
                "{string_value: 'b'} values {int64_value: 1}}}}",
                "constraints[0]", "no configuration"},
        Refusal{"constraints {table {columns: ['mode', 'tp'] rows {values "
                "{string_value: 'b'} values {int64_value: 1}}}}",
                "constraints[0]", "such as tp = 1, mode = b"},
        Refusal{"constraints {expression: 'json_extract(mode, \\'$[0]\\')'}",
                "constraints[0]", "no configuration"}));

TEST(SearchSpaceRefusalTest, WhatTextCannotSayIsRefusedToo) {
  const auto with = [](const std::function<void(v1::Study*)>& change) {
    v1::Study study = ReadStudy(kSound);
    change(&study);
    return study;
  };
  ExpectRefused(v1::Study(), "parameters", "at least one to tune");
  ExpectRefused(with([](v1::Study* study) {
                  study->mutable_parameters(1)
                      ->mutable_category()
                      ->mutable_values(1)
                      ->set_string_value("\xff");
                }),
                "parameters[1].category.values[1]", "must be UTF-8");
  ExpectRefused(with([](v1::Study* study) {
                  study->mutable_parameters(1)
                      ->mutable_category()
                      ->mutable_values(1)
                      ->set_string_value(std::string(257, 'x'));
                }),
                "parameters[1].category.values[1]", "at most 256");
  ExpectRefused(with([](v1::Study* study) {
                  study->mutable_parameters(0)->set_name("\xff\xfe");
                }),
                "parameters[0].name", "must be a letter");
  ExpectRefused(with([](v1::Study* study) {
                  study->mutable_parameters(0)->set_description("\xff");
                }),
                "parameters[0].description", "UTF-8");
  ExpectRefused(with([](v1::Study* study) {
                  study->add_constraints()->set_expression("tp = '\xff'");
                }),
                "constraints[0].expression", "is not UTF-8");
  ExpectRefused(
      with([](v1::Study* study) {
        study->add_constraints()->set_expression(std::string(5000, ' '));
      }),
      "constraints[0].expression", "at most 4096");
  ExpectRefused(
      with([](v1::Study* study) {
        study->add_constraints()->set_expression(std::string("tp\0= 1", 6));
      }),
      "constraints[0].expression", "control character");
}

TEST(SearchSpaceRefusalTest, MoreThanTheLimitsIsRefused) {
  v1::Study study = ReadStudy(kSound);
  for (int i = 0; i < 255; ++i) {
    v1::Parameter* parameter = study.add_parameters();
    parameter->set_name(absl::StrCat("x", i));
    parameter->mutable_integer()->set_max(1);
  }
  ExpectRefused(study, "parameters", "has 257 entries; at most 256");

  study = ReadStudy(kSound);
  for (int i = 0; i < 257; ++i) study.add_constraints()->set_expression("1");
  ExpectRefused(study, "constraints", "at most 256");

  study = ReadStudy(kSound);
  for (int i = 0; i < 257; ++i) {
    study.add_context()->set_name(absl::StrCat("c", i));
  }
  ExpectRefused(study, "context", "at most 256");

  study = ReadStudy(kSound);
  for (int i = 0; i < 10001; ++i) {
    study.mutable_parameters(0)->mutable_integer()->add_values(10 + i);
  }
  ExpectRefused(study, "parameters[0].integer.values", "at most 10000");

  study = ReadStudy(kSound);
  for (int i = 0; i < 10001; ++i) {
    study.mutable_parameters(1)
        ->mutable_category()
        ->add_values()
        ->set_string_value(absl::StrCat("v", i));
  }
  ExpectRefused(study, "parameters[1].category.values", "at most 10000");

  study = ReadStudy(kSound);
  v1::TableConstraint* table = study.add_constraints()->mutable_table();
  table->add_columns("tp");
  for (int i = 0; i < 100001; ++i) {
    table->add_rows()->add_values()->set_int64_value(1);
  }
  ExpectRefused(study, "constraints[0].table.rows", "at most 100000");
}

// Constraints that no short search can decide: the answer is that, soon.
TEST(SearchSpaceRefusalTest, AnUndecidedSpaceIsToldHonestly) {
  v1::Study study;
  std::string sum = "0";
  for (int i = 0; i < 40; ++i) {
    v1::Parameter* parameter = study.add_parameters();
    parameter->set_name(absl::StrCat("x", i));
    parameter->mutable_integer()->set_min(1);
    parameter->mutable_integer()->set_max(9);
    absl::StrAppend(&sum, " + x", i, " * ", 2 * (1 + i * i));
  }
  study.add_constraints()->set_expression(absl::StrCat(sum, " = 5001"));
  const auto space = SearchSpace::Parse(study);
  EXPECT_THAT(space, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("though there may be one")));
}

}  // namespace
}  // namespace cubicml
