// SPDX-License-Identifier: Apache-2.0

#include "predictor/featurizer.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<const SearchSpace> ParseSpace(const std::string& text) {
  v1::Study study;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &study));
  const auto space = SearchSpace::Parse(study);
  EXPECT_THAT(space, IsOk());
  return *space;
}

// The column of that name in the only row.
float Column(const Featurizer& featurizer, const FeatureMatrix& features,
             const std::string& name) {
  const auto& names = featurizer.column_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return features.values[static_cast<size_t>(at - names.begin())];
}

TEST(Featurizer, CountsArePlacedByTheirLogarithm) {
  const Featurizer featurizer(ParseSpace(R"pb(
    parameters {
      name: "tp"
      integer { values: [ 1, 2, 4, 8, 16 ] }
    }
    parameters {
      name: "depth"
      integer { min: 3 max: 5 }
    }
  )pb"));
  const FeatureMatrix features =
      featurizer.Featurize(std::vector<Point>{{4.0, 5.0}}, Context{});
  EXPECT_NEAR(Column(featurizer, features, "tp"), 0.0F, 1e-6);
  EXPECT_NEAR(Column(featurizer, features, "depth"), 1.0F, 1e-6);
}

TEST(Featurizer, ProductsAndRatiosOfCountsAreColumns) {
  const Featurizer featurizer(ParseSpace(R"pb(
    parameters {
      name: "a"
      integer { values: [ 1, 2, 4, 8 ] }
    }
    parameters {
      name: "b"
      integer { values: [ 1, 2, 4, 8 ] }
    }
  )pb"));
  const auto product = [&](double a, double b, const std::string& name) {
    return Column(featurizer,
                  featurizer.Featurize(std::vector<Point>{{a, b}}, Context{}),
                  name);
  };
  EXPECT_FLOAT_EQ(product(2.0, 4.0, "b*a"), product(8.0, 1.0, "b*a"));
  EXPECT_FLOAT_EQ(product(2.0, 4.0, "b/a"), product(4.0, 8.0, "b/a"));
  EXPECT_FLOAT_EQ(product(8.0, 8.0, "b*a"), 1.0F);
}

TEST(Featurizer, CategoriesAreOneHotAndTwoValuesAreOneColumn) {
  const Featurizer featurizer(ParseSpace(R"pb(
    parameters {
      name: "mode"
      category {
        values { string_value: "x" }
        values { string_value: "y" }
        values { string_value: "z" }
      }
    }
    parameters {
      name: "fused"
      category {
        values { bool_value: false }
        values { bool_value: true }
      }
    }
  )pb"));
  const FeatureMatrix features =
      featurizer.Featurize(std::vector<Point>{{1.0, 1.0}}, Context{});
  EXPECT_THAT(features.values, testing::ElementsAre(0.0F, 1.0F, 0.0F, 1.0F));
}

TEST(Featurizer, AnInactiveKnobSaysSo) {
  const Featurizer featurizer(ParseSpace(R"pb(
    parameters {
      name: "pp"
      integer { values: [ 1, 2, 4 ] }
    }
    parameters {
      name: "vpp"
      integer { values: [ 1, 2, 4 ] }
      active_if: "pp > 1"
    }
  )pb"));
  const FeatureMatrix off =
      featurizer.Featurize(std::vector<Point>{{1.0, kNan}}, Context{});
  EXPECT_EQ(Column(featurizer, off, "vpp active"), 0.0F);
  for (const float value : off.values) EXPECT_TRUE(std::isfinite(value));
  const FeatureMatrix on =
      featurizer.Featurize(std::vector<Point>{{2.0, 4.0}}, Context{});
  EXPECT_EQ(Column(featurizer, on, "vpp active"), 1.0F);
}

TEST(Featurizer, ContextsOfDifferentModelsDiffer) {
  const auto space = ParseSpace(R"pb(
    parameters {
      name: "tp"
      integer { min: 1 max: 8 }
    }
    context { name: "model" type: STRING optional: true }
    context { name: "gpus" type: INTEGER }
  )pb");
  const Featurizer featurizer(space);
  const auto row = [&](const char* model) {
    ValueMap values;
    if (model != nullptr) values["model"].set_string_value(model);
    values["gpus"].set_int64_value(64);
    const auto context = space->ParseContext(values);
    EXPECT_THAT(context, IsOk());
    return featurizer.Featurize(std::vector<Point>{{1.0}}, *context);
  };
  const FeatureMatrix small = row("llama-1.3b");
  const FeatureMatrix large = row("llama-13b");
  const FeatureMatrix none = row(nullptr);
  EXPECT_NE(small.values, large.values);
  EXPECT_LT(Column(featurizer, small, "model"),
            Column(featurizer, large, "model"));
  EXPECT_EQ(Column(featurizer, none, "model present"), 0.0F);
  EXPECT_EQ(small.columns, featurizer.columns());
  EXPECT_EQ(small.values, row("llama-1.3b").values);
}

}  // namespace
}  // namespace cubicml
