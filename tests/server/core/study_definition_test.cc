// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_definition.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Study ValidStudy() {
  v1::Study study = BoundedStudy();
  study.set_name("studies/a");
  return study;
}

TEST(StudyDefinitionTest, ParsesWhatIsValidAndFillsInDefaults) {
  const auto definition = StudyDefinition::Parse(ValidStudy());
  ASSERT_THAT(definition, IsOk());
  EXPECT_EQ((*definition)->algorithm(), v1::DEFAULT);
  EXPECT_EQ((*definition)->lease(), absl::Minutes(10));
  EXPECT_EQ((*definition)->objectives(), 1U);
  EXPECT_TRUE((*definition)->maximize());
  std::vector<std::string> names;
  for (const MetricSchema& metric : (*definition)->metrics()) {
    names.push_back(metric.name);
  }
  EXPECT_THAT(names, ElementsAre("qps", "loss", "memory"));
}

TEST(StudyDefinitionTest, EveryFieldThatIsWrongIsNamed) {
  struct Case {
    const char* field;
    const char* merged;  // text format, merged into a valid study
  };
  const Case cases[] = {
      {"objectives[1].metric.name", "objectives { goal: MAXIMIZE }"},
      {"objectives[1].metric.name",
       "objectives { metric { name: 'qps' } goal: MAXIMIZE }"},
      {"objectives[1].metric.name",
       "objectives { metric { name: '9x' } goal: MAXIMIZE }"},
      {"objectives[1].goal", "objectives { metric { name: 'tflops' } }"},
      {"metrics[2].name", "metrics { name: 'loss' }"},
      {"metrics[2].name", "metrics { name: 'qps' }"},
      {"metrics[2].name", "metrics { name: 'a b' }"},
      {"metric_constraints[2].metric",
       "metric_constraints { metric: 'speed' max: 1 }"},
      {"metric_constraints[2]", "metric_constraints { metric: 'loss' }"},
      {"metric_constraints[2].max",
       "metric_constraints { metric: 'loss' max: nan }"},
      {"metric_constraints[2].min",
       "metric_constraints { metric: 'loss' min: -inf }"},
      {"metric_constraints[2].max",
       "metric_constraints { metric: 'loss' min: 2 max: 1 }"},
      {"settings.lease", "settings { lease { seconds: -5 } }"},
      {"settings.lease", "settings { lease { nanos: 5 } }"},
      {"settings.lease", "settings { lease { seconds: 99999999999 } }"},
      {"settings.initial_trials", "settings { initial_trials: -1 }"},
      {"settings.initial_trials", "settings { initial_trials: 1000000 }"},
      {"settings.algorithm", "settings { algorithm: 77 }"},
      {"labels", "labels { key: '' value: 'x' }"},
      {"labels.a", "labels { key: 'a' value: '\\377' }"},
      {"display_name", "display_name: '\\377\\376'"},
      {"parameters[4].integer.max",
       "parameters { name: 'z' integer { min: 3 max: 1 } }"},
      {"parameters[4].number.scale",
       "parameters { name: 'z' number { min: 0 max: 1 scale: SCALE_LOG } }"},
      {"parameters[4].name", "parameters { name: 'tp' integer { max: 1 } }"},
      {"constraints[1].expression", "constraints { expression: 'tp * (' }"},
      {"constraints[1].expression", "constraints { expression: 'nope = 1' }"},
  };
  for (const Case& test : cases) {
    v1::Study study = ValidStudy();
    if (std::string(test.merged).find("algorithm: 77") != std::string::npos) {
      study.mutable_settings()->set_algorithm(static_cast<v1::Algorithm>(77));
    } else {
      ASSERT_TRUE(
          google::protobuf::TextFormat::MergeFromString(test.merged, &study))
          << test.merged;
    }
    const absl::Status status = StudyDefinition::Parse(study).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument))
        << test.merged;
    EXPECT_EQ(FieldNamedBy(status), test.field) << test.merged << "\n"
                                                << status.ToString();
  }
}

TEST(StudyDefinitionTest, RefusesWhatIsTooLong) {
  v1::Study study = ValidStudy();
  study.set_display_name(std::string(201, 'x'));
  EXPECT_EQ(FieldNamedBy(StudyDefinition::Parse(study).status()),
            "display_name");
  study = ValidStudy();
  for (int i = 0; i < 65; ++i) {
    (*study.mutable_labels())["k" + std::to_string(i)] = "v";
  }
  EXPECT_EQ(FieldNamedBy(StudyDefinition::Parse(study).status()), "labels");
  study = ValidStudy();
  study.mutable_objectives(0)->mutable_metric()->set_name(std::string(65, 'x'));
  EXPECT_EQ(FieldNamedBy(StudyDefinition::Parse(study).status()),
            "objectives[0].metric.name");
  study = ValidStudy();
  study.clear_objectives();
  EXPECT_EQ(FieldNamedBy(StudyDefinition::Parse(study).status()), "objectives");
}

absl::Status CheckNew(const v1::Study& study,
                      const v1::Study* before = nullptr) {
  CUBICML_ASSIGN_OR_RETURN(const auto definition,
                           StudyDefinition::Parse(study));
  if (before == nullptr) return definition->CheckNew();
  CUBICML_ASSIGN_OR_RETURN(const auto old, StudyDefinition::Parse(*before));
  return definition->CheckNew(old.get());
}

TEST(StudyDefinitionTest, ExhaustiveSearchNeedsASpaceThatCanBeSearched) {
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  study.mutable_settings()->set_algorithm(v1::EXHAUSTIVE);
  EXPECT_THAT(CheckNew(study), IsOk());
  for (v1::Parameter& parameter : *study.mutable_parameters()) {
    parameter.mutable_integer()->set_max(9'999);
  }
  EXPECT_EQ(FieldNamedBy(CheckNew(study)), "settings.algorithm");
  // One that is stored goes on.
  EXPECT_THAT(StudyDefinition::Parse(study), IsOk());
  // No context makes it smaller, where there is no constraint.
  v1::ContextField& gpus = *study.add_context();
  gpus.set_name("gpus");
  gpus.set_type(v1::INTEGER);
  EXPECT_EQ(FieldNamedBy(CheckNew(study)), "settings.algorithm");
  study.add_constraints()->set_expression("x * y = gpus");
  EXPECT_THAT(CheckNew(study), IsOk());
}

TEST(StudyDefinitionTest, AConstraintThatIsStoredIsNotRefusedAgain) {
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  study.add_constraints()->set_expression("1 = 1");
  EXPECT_THAT(StudyDefinition::Parse(study), IsOk());
  EXPECT_EQ(FieldNamedBy(CheckNew(study)), "constraints[0].expression");
  v1::Study renamed = study;
  renamed.set_display_name("A");
  EXPECT_THAT(CheckNew(renamed, &study), IsOk());
}

TEST(StudyDefinitionTest, ASpaceThatIsSearchedWholeIsNotCountedAgain) {
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  study.mutable_settings()->set_algorithm(v1::EXHAUSTIVE);
  for (v1::Parameter& parameter : *study.mutable_parameters()) {
    parameter.mutable_integer()->set_max(9'999);
  }
  v1::Study renamed = study;
  renamed.set_display_name("A");
  EXPECT_THAT(CheckNew(renamed, &study), IsOk());
  renamed.mutable_parameters(0)->mutable_integer()->set_max(9'998);
  EXPECT_EQ(FieldNamedBy(CheckNew(renamed, &study)), "settings.algorithm");
}

TEST(StudyDefinitionTest, AllConstraintsOfAMetricAreOneBound) {
  v1::Study study = ValidStudy();
  study.clear_metric_constraints();
  v1::MetricConstraint& absolute = *study.add_metric_constraints();
  absolute.set_metric("loss");
  absolute.set_max(3.0);
  v1::MetricConstraint& relative = *study.add_metric_constraints();
  relative.set_metric("loss");
  relative.set_min(0.5);
  relative.set_max(1.25);
  relative.set_relative_to_baseline(true);
  const auto definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  std::vector<MetricBound> bounds = (*definition)->Bounds({});
  ASSERT_EQ(bounds.size(), 1U);
  EXPECT_EQ(bounds[0].min, -HUGE_VAL);
  EXPECT_EQ(bounds[0].max, 3.0);
  bounds = (*definition)->Bounds({{"loss", 2.0}});
  ASSERT_EQ(bounds.size(), 1U);
  EXPECT_EQ(bounds[0].min, 1.0);
  EXPECT_EQ(bounds[0].max, 2.5);
  EXPECT_EQ((*definition)->Bounds({{"loss", 8.0}})[0].max, 3.0);
}

TEST(StudyDefinitionTest, MetricsMustBeDeclaredAndFinite) {
  const auto definition = StudyDefinition::Parse(ValidStudy());
  ASSERT_THAT(definition, IsOk());
  MetricMap metrics;
  metrics["qps"] = 1.0;
  EXPECT_THAT((*definition)->CheckMetrics(metrics), IsOk());
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    metrics["loss"] = value;
    EXPECT_EQ(FieldNamedBy((*definition)->CheckMetrics(metrics)),
              "metrics.loss");
  }
  metrics.clear();
  metrics["speed"] = 1.0;
  EXPECT_EQ(FieldNamedBy((*definition)->CheckMetrics(metrics)),
            "metrics.speed");
  EXPECT_THAT(
      (*definition)->CheckMetrics(metrics),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'speed'")));
  metrics.clear();
  metrics[std::string(10'000, 'x')] = 1.0;
  EXPECT_EQ(FieldNamedBy((*definition)->CheckMetrics(metrics)), "metrics");
}

TEST(StudyDefinitionTest, MetricConstraintsAreAbsoluteOrRelativeToTheBaseline) {
  const auto definition = StudyDefinition::Parse(ValidStudy());
  ASSERT_THAT(definition, IsOk());
  MetricMap metrics;
  metrics["memory"] = 76.0;
  metrics["loss"] = 2.3;
  EXPECT_EQ((*definition)->FindViolation(metrics, {}), std::nullopt);
  EXPECT_THAT((*definition)->FindViolation(metrics, {{"loss", 2.0}}),
              ::testing::Optional(HasSubstr("loss = 2.3 is above 2.2")));
  metrics["memory"] = 76.5;
  EXPECT_THAT((*definition)->FindViolation(metrics, {}),
              ::testing::Optional(HasSubstr("memory = 76.5 is above 76")));
}

TEST(StudyDefinitionTest, AModelFitsOnlyTheMetricsThatItWasTrainedOn) {
  v1::Study study = ValidStudy();
  study.add_metrics()->set_name("tflops");
  const uint64_t fingerprint =
      (*StudyDefinition::Parse(study))->model_fingerprint();
  v1::Study same = study;
  same.set_display_name("another");
  EXPECT_EQ((*StudyDefinition::Parse(same))->model_fingerprint(), fingerprint);
  v1::Study reordered = study;
  const int last = reordered.metrics_size() - 1;
  reordered.mutable_metrics()->SwapElements(last - 1, last);
  EXPECT_NE((*StudyDefinition::Parse(reordered))->model_fingerprint(),
            fingerprint);
  v1::Study turned = study;
  turned.mutable_objectives(0)->set_goal(v1::MINIMIZE);
  EXPECT_NE((*StudyDefinition::Parse(turned))->model_fingerprint(),
            fingerprint);
}

TEST(StudyDefinitionTest, AModelFitsOnlyTheDomainsThatItWasTrainedOn) {
  const v1::Study study = ValidStudy();
  const uint64_t fingerprint =
      (*StudyDefinition::Parse(study))->model_fingerprint();
  v1::Study described = study;
  described.mutable_parameters(0)->set_description("tensor parallel");
  EXPECT_EQ((*StudyDefinition::Parse(described))->model_fingerprint(),
            fingerprint);
  v1::Study widened = study;
  widened.mutable_parameters(0)->mutable_integer()->add_values(16);
  v1::Study scaled = study;
  scaled.mutable_parameters(0)->mutable_integer()->set_scale(v1::SCALE_LOG);
  v1::Study reordered = study;
  reordered.mutable_parameters(2)
      ->mutable_category()
      ->mutable_values()
      ->SwapElements(0, 1);
  for (const v1::Study& changed : {widened, scaled, reordered}) {
    EXPECT_NE((*StudyDefinition::Parse(changed))->model_fingerprint(),
              fingerprint);
  }
}

TEST(StudyDefinitionTest, ALivingStudyMayNotLoseAMetricOrItsSeed) {
  const auto old_definition = StudyDefinition::Parse(ValidStudy());
  ASSERT_THAT(old_definition, IsOk());
  v1::Study study = ValidStudy();
  study.add_metrics()->set_name("tflops");
  auto definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  EXPECT_THAT((*definition)->CheckExtends(**old_definition), IsOk());
  study = ValidStudy();
  study.mutable_metrics()->RemoveLast();
  study.clear_metric_constraints();
  definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  EXPECT_THAT((*definition)->CheckExtends(**old_definition),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'memory' cannot be removed")));
  study = ValidStudy();
  study.mutable_settings()->set_seed(8);
  definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  EXPECT_THAT((*definition)->CheckExtends(**old_definition),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("settings.seed")));
}

}  // namespace
}  // namespace cubicml
