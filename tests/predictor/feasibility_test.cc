// SPDX-License-Identifier: Apache-2.0

#include "predictor/feasibility.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "predictor/linear_regressor.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

// Believes the same of every row.
class ConstantRegressor final : public Regressor {
 public:
  explicit ConstantRegressor(double mean) : mean_(mean) {}

  void Predict(const FeatureMatrix&, size_t,
               std::span<Belief> beliefs) const override {
    for (Belief& belief : beliefs) belief = {mean_, 0.1};
  }
  void Save(internal::Regressor*) const override {}

 private:
  const double mean_;
};

// What is believed of a held-out row: a function of its features.
using HeldOut = std::function<double(const float* row)>;

RegressorKind MakeKind(size_t max_rows, double mean, const HeldOut& held_out) {
  return {[=](const RegressionProblem& problem,
              const std::stop_token&) -> absl::StatusOr<RegressionFit> {
            RegressionFit fit;
            fit.regressor = std::make_unique<ConstantRegressor>(mean);
            fit.levels = {0.0};
            for (size_t i = 0; i < problem.features->rows; ++i) {
              fit.held_out.push_back({held_out(problem.features->row(i)), 0.1});
            }
            return fit;
          },
          max_rows};
}

void AddRow(std::vector<float> features, bool feasible, TrainingSet* set) {
  LabelledRows& rows = set->labelled;
  // Runs of twenty, so that no fold sees a part of a pattern only.
  rows.folds.push_back(static_cast<int>(rows.folds.size() / 20 % 5));
  rows.features.columns = features.size();
  rows.features.values.insert(rows.features.values.end(), features.begin(),
                              features.end());
  ++rows.features.rows;
  rows.feasible.push_back(feasible);
  rows.weights.push_back(1.0);
}

double ProbabilityOf(const FeasibilityModel& model, std::vector<float> row) {
  const FeatureMatrix features{1, row.size(), row};
  double probability = 0.0;
  model.Predict(features, 0, {&probability, 1});
  return probability;
}

TEST(FeasibilityTest, BeforeAnythingFailedFailureIsUnlikely) {
  TrainingSet set;
  for (int i = 0; i < 18; ++i) AddRow({0.0F}, true, &set);
  Rng rng(1);
  const auto fit = FitFeasibility(set, {{FitLinear, 100}}, &rng, {});
  ASSERT_THAT(fit, IsOk());
  EXPECT_FALSE(fit->auc.has_value());
  EXPECT_NEAR(ProbabilityOf(*fit->model, {0.0F}), 0.95, 1e-9);
}

TEST(FeasibilityTest, ProbabilitiesAreShares) {
  // Of rows at x = 1 nine of ten work, of those at -1 three of ten.
  TrainingSet set;
  for (int i = 0; i < 400; ++i) {
    const bool high = i % 2 == 0;
    const int at = i / 2 % 10;
    AddRow({high ? 1.0F : -1.0F}, at < (high ? 9 : 3), &set);
  }
  Rng rng(1);
  const auto fit = FitFeasibility(set, {{FitLinear, 1000}}, &rng, {});
  ASSERT_THAT(fit, IsOk());
  EXPECT_NEAR(ProbabilityOf(*fit->model, {1.0F}), 0.9, 0.04);
  EXPECT_NEAR(ProbabilityOf(*fit->model, {-1.0F}), 0.3, 0.04);
  EXPECT_GT(*fit->auc, 0.75);
  const double entropy = [](double p) {
    return -p * std::log(p) - (1.0 - p) * std::log(1.0 - p);
  }(0.9) + 0.6108643;  // that of 0.3
  EXPECT_NEAR(fit->log_loss, 0.5 * entropy, 0.03);
}

TEST(FeasibilityTest, WhatSaysNothingIsNotBelieved) {
  TrainingSet set;
  for (int i = 0; i < 200; ++i) AddRow({0.0F}, i % 4 != 0, &set);
  Rng rng(1);
  // Rather the opposite of the truth: the curve must not turn it round.
  const auto fit = FitFeasibility(
      set, {MakeKind(1000, -1.0, [](const float*) { return -1.0; })}, &rng, {});
  ASSERT_THAT(fit, IsOk());
  EXPECT_NEAR(ProbabilityOf(*fit->model, {0.0F}), 0.75, 0.02);
}

TEST(FeasibilityTest, KindsAreComparedByTheRowsThatBothHave) {
  // Features: the answer, whether the row is one of the last, and a flaw.
  TrainingSet set;
  for (int i = 0; i < 4000; ++i) {
    const bool feasible = i % 2 == 0;
    AddRow({feasible ? 1.0F : -1.0F, i >= 3990 ? 1.0F : 0.0F,
            i % 5 == 0 ? 1.0F : 0.0F},
           feasible, &set);
  }
  // One sees few rows, of which every fifth is wrong; the other sees all, and
  // only the last are wrong. The last are a quarter of what both have seen.
  const auto flawed = [](size_t column) {
    return [column](const float* row) {
      return static_cast<double>(row[column] > 0.0F ? -row[0] : row[0]);
    };
  };
  Rng rng(1);
  const auto fit = FitFeasibility(
      set, {MakeKind(40, 1.0, flawed(2)), MakeKind(10'000, -1.0, flawed(1))},
      &rng, {});
  ASSERT_THAT(fit, IsOk());
  EXPECT_GT(ProbabilityOf(*fit->model, {0.0F, 0.0F, 0.0F}), 0.5);
}

TEST(FeasibilityTest, ASavedModelSaysTheSame) {
  TrainingSet set;
  for (int i = 0; i < 100; ++i) {
    const float x = static_cast<float>(i) / 50.0F - 1.0F;
    AddRow({x}, x < 0.3F, &set);
  }
  Rng rng(1);
  const auto fit = FitFeasibility(set, {{FitLinear, 1000}}, &rng, {});
  ASSERT_THAT(fit, IsOk());
  internal::FeasibilityModel proto;
  fit->model->Save(&proto);
  const auto loaded = FeasibilityModel::Load(proto, 1);
  ASSERT_THAT(loaded, IsOk());
  for (const float x : {-1.0F, 0.0F, 1.0F}) {
    EXPECT_EQ(ProbabilityOf(**loaded, {x}), ProbabilityOf(*fit->model, {x}));
  }
  EXPECT_THAT(FeasibilityModel::Load(proto, 0),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace cubicml
