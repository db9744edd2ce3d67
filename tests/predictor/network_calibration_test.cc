// SPDX-License-Identifier: Apache-2.0

#include "predictor/network_calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "predictor/network_regressor.h"
#include "predictor/quality.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

constexpr int kFolds = 4;

// Rows of one feature, in folds and groups, and networks that put out that
// feature, each with a slope of its own.
class NetworkCalibrationTest : public testing::Test {
 protected:
  void AddRow(float x, double target, int group, int fold) {
    features_.columns = 1;
    features_.values.push_back(x);
    ++features_.rows;
    targets_.push_back(target);
    weights_.push_back(1.0);
    groups_.push_back(group);
    folds_.push_back(fold);
    group_count_ = std::max(group_count_, group + 1);
  }

  RegressionProblem problem() const {
    RegressionProblem problem;
    problem.features = &features_;
    problem.targets = targets_;
    problem.weights = weights_;
    problem.groups = groups_;
    problem.group_count = group_count_;
    problem.folds = folds_;
    problem.fold_count = kFolds;
    return problem;
  }

  static NetworkEnsemble MakeEnsemble() {
    NetworkEnsemble ensemble;
    ensemble.layer_sizes = {1, 1};
    for (int m = 0; m < kFolds; ++m) {
      const float weight = 2.0F + 0.5F * static_cast<float>(m);
      ensemble.members.push_back({{weight, 0.25F}, 0.0, 1.0});
    }
    return ensemble;
  }

  // Of the rows that `keep` marks.
  double Tau(const RegressionFit& fit, const std::vector<bool>& keep) const {
    std::vector<double> predicted;
    std::vector<double> measured;
    std::vector<int> groups;
    for (size_t i = 0; i < keep.size(); ++i) {
      if (!keep[i]) continue;
      predicted.push_back(fit.held_out[i].mean);
      measured.push_back(targets_[i]);
      groups.push_back(groups_[i]);
    }
    return KendallTau(predicted, measured, groups).value_or(0.0);
  }

  FeatureMatrix features_;
  std::vector<double> targets_;
  std::vector<double> weights_;
  std::vector<int> groups_;
  std::vector<int> folds_;
  int group_count_ = 1;
};

TEST_F(NetworkCalibrationTest, WhatIsHeldOutDoesNotKnowTheAnswer) {
  Rng rng(1);
  std::vector<bool> alone;  // in a fold with the whole of its group
  for (int group = 0; group < 200; ++group) {
    for (int row = 0; row < 2; ++row) {
      const bool whole = group % 2 == 0;
      AddRow(static_cast<float>(rng.Uniform()), rng.Normal(), group,
             (group / 2 + (whole ? 0 : row)) % kFolds);
      alone.push_back(whole);
    }
  }
  const auto fit = CalibrateNetworks(problem(), MakeEnsemble());
  ASSERT_THAT(fit, IsOk());
  EXPECT_LT(Tau(*fit, alone), 0.25);
  EXPECT_LT(Tau(*fit, std::vector<bool>(alone.size(), true)), 0.15);
}

TEST_F(NetworkCalibrationTest, GroupsOfOneRowDoNotMakeItSure) {
  Rng rng(2);
  for (int i = 0; i < 80; ++i) {
    AddRow(static_cast<float>(rng.Uniform()), rng.Normal(), 0, i % kFolds);
  }
  const auto few = CalibrateNetworks(problem(), MakeEnsemble());
  ASSERT_THAT(few, IsOk());
  for (int i = 0; i < 400; ++i) {
    AddRow(static_cast<float>(rng.Uniform()), rng.Normal(), 1 + i, i % kFolds);
  }
  const auto many = CalibrateNetworks(problem(), MakeEnsemble());
  ASSERT_THAT(many, IsOk());
  EXPECT_NEAR(many->noise, few->noise, 0.2 * few->noise);
}

TEST_F(NetworkCalibrationTest, FindsTheSlopeAndTheLevelsOfGroups) {
  Rng rng(3);
  for (int i = 0; i < 120; ++i) {
    const float x = static_cast<float>(rng.Uniform());
    const int group = i % 3;
    AddRow(x, 3.0 * static_cast<double>(x) + 10.0 * group + 0.01 * rng.Normal(),
           group, (i / 3) % kFolds);
  }
  const auto fit = CalibrateNetworks(problem(), MakeEnsemble());
  ASSERT_THAT(fit, IsOk());
  const FeatureMatrix two{2, 1, {0.0F, 1.0F}};
  std::vector<Belief> beliefs(2);
  fit->regressor->Predict(two, 0, beliefs);
  EXPECT_NEAR(beliefs[1].mean - beliefs[0].mean, 3.0, 0.05);
  EXPECT_GT(beliefs[0].stddev, 0.0);
  EXPECT_NEAR(fit->levels[2] - fit->levels[1], 10.0, 0.05);
  EXPECT_NEAR(beliefs[0].mean + fit->levels[1], 10.0, 0.05);
  EXPECT_LT(fit->noise, 0.05);
  for (size_t i = 0; i < targets_.size(); ++i) {
    EXPECT_NEAR(fit->held_out[i].mean, targets_[i], 0.1);
  }
}

TEST_F(NetworkCalibrationTest, RefusesOutputsThatAreNotFinite) {
  for (int i = 0; i < 8; ++i) AddRow(1.0F, i, 0, i % kFolds);
  NetworkEnsemble ensemble = MakeEnsemble();
  ensemble.members[1].parameters[0] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(CalibrateNetworks(problem(), std::move(ensemble)),
              StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace cubicml
