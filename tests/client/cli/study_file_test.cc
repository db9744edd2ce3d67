// SPDX-License-Identifier: Apache-2.0

#include "client/cli/study_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "base/field_error.h"
#include "client/cli/json_views.h"
#include "client/cli/output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExample[] = "docs/examples/study.yaml";

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<StudyFile> file = ParseStudyFile(text, "study.yaml");
  return file.ok() ? "OK" : std::string(file.status().message());
}

v1::Parameter ParameterOf(absl::string_view line) {
  const absl::StatusOr<StudyFile> file = ParseStudyFile(
      "parameters:\n  - " + std::string(line) + "\n", "study.yaml");
  EXPECT_THAT(file, IsOk());
  return file.ok() ? file->study.parameters(0) : v1::Parameter();
}

TEST(StudyFileTest, TheDocumentedExampleIsRead) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StudyFile file, ParseStudyFile(ReadFileOrDie(kExample), kExample));
  EXPECT_THAT(
      file.study, EqualsProto(R"pb(
        display_name: "DLRM on this machine"
        objectives {
          metric { name: "qps" unit: "samples/s" }
          goal: MAXIMIZE
        }
        metrics { name: "peak_memory_mib" unit: "MiB" }
        metrics { name: "loss" }
        metric_constraints { metric: "peak_memory_mib" max: 3000 }
        metric_constraints {
          metric: "loss"
          max: 1.002
          relative_to_baseline: true
        }
        parameters {
          name: "batch_size"
          integer { values: 64 values: 128 values: 256 scale: SCALE_LOG }
          default_value { int64_value: 128 }
        }
        parameters {
          name: "loader_threads"
          integer { min: 1 max: 4 }
          default_value { int64_value: 1 }
        }
        parameters {
          name: "lr"
          number { min: 0.001 max: 0.1 scale: SCALE_LOG }
        }
        parameters {
          name: "embedding_gradient"
          category {
            values { string_value: "dense" }
            values { string_value: "sparse" }
          }
          default_value { string_value: "dense" }
        }
        parameters {
          name: "pin"
          category {
            values { bool_value: true }
            values { bool_value: false }
          }
        }
        parameters {
          name: "sharding"
          category {
            values { string_value: "full" }
            values { string_value: "grad" }
            values { string_value: "none" }
          }
          repeat: 11
          default_value { string_value: "full" }
        }
        parameters {
          name: "prefetch"
          integer { values: 1 values: 2 values: 4 }
          active_if: "loader_threads > 1"
        }
        context {
          name: "rows"
          type: INTEGER
          default_value { int64_value: 1000 }
        }
        context { name: "machine" type: STRING optional: true }
        constraints { expression: "batch_size % 64 = 0" }
        constraints {
          expression: "vec_count(sharding, 'none') <= 8"
          description: "more do not fit"
        }
        constraints {
          table {
            columns: "embedding_gradient"
            columns: "pin"
            rows {
              values { string_value: "dense" }
              values { bool_value: true }
            }
            rows {
              values { string_value: "dense" }
              values { bool_value: false }
            }
            rows {
              values { string_value: "sparse" }
              values { bool_value: true }
            }
          }
        }
        settings {
          algorithm: DEFAULT
          seed: 1
          lease { seconds: 600 }
          initial_trials: 8
        }
        labels { key: "team" value: "ads" }
      )pb"));
  EXPECT_EQ(file.id, "dlrm");
}

TEST(StudyFileTest, WhatIsWrittenIsReadAsTheSameStudy) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      StudyFile file, ParseStudyFile(ReadFileOrDie(kExample), kExample));
  v1::Study stored = file.study;
  stored.set_name("studies/dlrm");
  stored.set_etag("7");
  stored.mutable_create_time()->set_seconds(1'700'000'000);
  stored.mutable_progress()->set_trials(3);
  stored.mutable_progress()->mutable_surrogate()->set_kind("linear");
  for (const std::string& text :
       {FormatYaml(StudyToJson(stored)), FormatJson(StudyToJson(stored))}) {
    CUBICML_ASSERT_OK_AND_ASSIGN(const StudyFile again,
                                 ParseStudyFile(text, "again.yaml"));
    EXPECT_THAT(again.study, EqualsProto(file.study)) << text;
    EXPECT_EQ(again.id, "dlrm");
  }
}

TEST(StudyFileTest, WordsAreTypedAsYaml12DoesIt) {
  EXPECT_THAT(
      ParameterOf("{name: a, type: category, values: [yes, no, 012x, 1:30]}"),
      EqualsProto(R"pb(
        name: "a"
        category {
          values { string_value: "yes" }
          values { string_value: "no" }
          values { string_value: "012x" }
          values { string_value: "1:30" }
        })pb"));
  EXPECT_THAT(ParameterOf("{name: a, type: category, values: [\"1\", 'true']}"),
              EqualsProto(R"pb(
                name: "a"
                category {
                  values { string_value: "1" }
                  values { string_value: "true" }
                })pb"));
}

TEST(StudyFileTest, NumbersOfACategoryAreOfOneType) {
  EXPECT_THAT(
      ParameterOf("{name: a, type: category, values: [1, 2.5], default: 1}"),
      EqualsProto(R"pb(
        name: "a"
        category {
          values { double_value: 1 }
          values { double_value: 2.5 }
        }
        default_value { double_value: 1 })pb"));
}

TEST(StudyFileTest, ColumnsOfATableTakeTheTypeOfTheirParameter) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StudyFile file,
      ParseStudyFile("parameters: [{name: lr, type: number, min: 0, max: 1}]\n"
                     "constraints: [{columns: [lr], rows: [[1]]}]\n",
                     "s.yaml"));
  EXPECT_THAT(file.study.constraints(0).table().rows(0).values(0),
              EqualsProto("double_value: 1"));
}

TEST(StudyFileTest, AVectorMayHaveADefaultForEachElement) {
  EXPECT_THAT(ParameterOf("{name: a, type: integer, min: 1, max: 9, repeat: 2, "
                          "default: [3, 4]}"),
              EqualsProto(R"pb(
                name: "a"
                integer { min: 1 max: 9 }
                repeat: 2
                default_value {
                  list_value {
                    values { int64_value: 3 }
                    values { int64_value: 4 }
                  }
                })pb"));
}

TEST(StudyFileTest, TheSeedMayStandAtTheTop) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StudyFile file,
      ParseStudyFile("seed: 18446744073709551615\n", "s.yaml"));
  EXPECT_EQ(file.study.settings().seed(), 18446744073709551615u);
  EXPECT_THAT(file.fields, ElementsAre("settings"));
}

struct Refusal {
  const char* text;
  const char* message;
};

TEST(StudyFileTest, MistakesAreToldWithTheirLineAndField) {
  const Refusal refusals[] = {
      {"parameters: [\n  {name: a", "study.yaml:2: not YAML"},
      {"- a\n", "study.yaml:1: must be a map"},
      {"", "study.yaml: has 0 documents instead of one"},
      {"a: 1\n---\nb: 2\n", "has 2 documents"},
      {"display_name: x\nparameter: []\n",
       "study.yaml:2: unknown key 'parameter'; did you mean 'parameters'?"},
      {"labels: {a: b}\nlabels: {a: b}\n",
       "study.yaml:2: has the key 'labels' twice"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: 2}\n"
       "  - {name: b, tipe: integer}\n",
       "study.yaml:3: parameters[1]: unknown key 'tipe'; did you mean 'type'?"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: 2, "
       "default_value: 1}\n",
       "study.yaml:2: parameters[0]: unknown key 'default_value'; did you "
       "mean 'default'?"},
      {"parameters:\n  - name: a\n    type: integr\n",
       "study.yaml:3: parameters[0].type: 'integr' is unknown; did you mean "
       "'integer'?"},
      {"parameters:\n  - {name: a, type: integer, min: 1}\n",
       "study.yaml:2: parameters[0]: needs 'max'"},
      {"parameters:\n  - {name: a, type: integer}\n",
       "parameters[0]: needs 'min' and 'max', or 'values'"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: x}\n",
       "parameters[0].max: 'x' is not an integer"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: 2.5}\n",
       "parameters[0].max: '2.5' is not an integer"},
      {"parameters:\n  - {name: a, type: integer, values: [1], min: 1}\n",
       "parameters[0].min: does not go together with 'values'"},
      {"parameters:\n  - {name: a, type: integer, values: []}\n",
       "parameters[0].values: must not be empty"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: "
       "9223372036854775808}\n",
       "'9223372036854775808' does not fit 64 bits"},
      {"parameters:\n  - {name: a, type: number, values: [1.5]}\n",
       "parameters[0].values: belongs to integers and categories"},
      {"parameters:\n  - {name: a, type: number, min: 0, max: .inf}\n",
       "parameters[0].max: '.inf' is not a number"},
      {"parameters:\n  - {name: a, type: category, values: [1, x]}\n",
       "parameters[0].values: must be of one type"},
      {"parameters:\n  - {name: a, type: category, values: [null]}\n",
       "parameters[0].values[0]: has no value"},
      {"parameters:\n  - {name: a, type: category, values: [x], min: 1}\n",
       "parameters[0].min: belongs to integers and numbers"},
      {"parameters:\n  - {name: a, type: category, values: [x], default: "
       "[x]}\n",
       "parameters[0].default: is a list, which needs 'repeat'"},
      {"parameters:\n  - {name: a, type: category, values: [x], repeat: 2, "
       "default: [x]}\n",
       "parameters[0].default: has 1 values, repeat is 2"},
      {"parameters:\n  - {name: a, type: category, values: [x], repeat: 0}\n",
       "parameters[0].repeat: must be at least 1"},
      {"parameters:\n  - {name: a, type: integer, min: 1, max: 2, scale: ln}\n",
       "parameters[0].scale: 'ln' is unknown"},
      {"context:\n  - {name: a, type: int}\n",
       "context[0].type: 'int' is unknown"},
      {"objectives:\n  - {metric: qps}\n", "objectives[0]: needs 'goal'"},
      {"objectives:\n  - {metric: qps, goal: maximum}\n",
       "objectives[0].goal: 'maximum' is unknown; it is one of maximize,"},
      {"metric_constraints:\n  - {metric: m}\n",
       "metric_constraints[0]: needs 'min' or 'max'"},
      {"constraints:\n  - {description: d}\n",
       "constraints[0]: needs either 'expression' or 'columns' and 'rows'"},
      {"constraints:\n  - {columns: [a, b], rows: [[1, 2], [1]]}\n",
       "constraints[0].rows[1]: has 1 values for 2 columns"},
      {"settings: {lease: soon}\n",
       "settings.lease: 'soon' is not a duration such as 90s"},
      {"settings: {seed: 1}\nseed: 2\n", "study.yaml:2: seed: is in settings"},
      {"settings: {initial_trials: -1}\n",
       "initial_trials: -1 is out of range"},
      {"id: My Study\n", "study.yaml:1: id: 'My Study' is not the name"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(ErrorOf(refusal.text), HasSubstr(refusal.message))
        << refusal.text;
  }
}

TEST(StudyFileTest, ARefusalOfTheServiceIsFoundInTheFile) {
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const StudyFile file,
      ParseStudyFile("display_name: x\nparameters:\n  - name: a\n"
                     "    type: integer\n    min: 5\n    max: 1\n",
                     "study.yaml"));
  const auto located = [&](const char* field) {
    return std::string(
        LocateError(file, FieldError(field, "is wrong")).message());
  };
  EXPECT_EQ(located("study.parameters[0].integer.max"),
            "study.yaml:6: study.parameters[0].integer.max: is wrong");
  EXPECT_EQ(located("parameters[0].integer.values[3]"),
            "study.yaml:3: parameters[0].integer.values[3]: is wrong");
  EXPECT_EQ(located("display_name"), "study.yaml:1: display_name: is wrong");
  EXPECT_EQ(located("objectives"), "study.yaml: objectives: is wrong");
  EXPECT_EQ(LocateError(file, absl::AbortedError("x")),
            absl::AbortedError("x"));
}

}  // namespace
}  // namespace cubicml
