// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "predictor/kernel_trainer.h"
#include "predictor/linear_trainer.h"
#include "predictor/regressor.h"
#include "tests/predictor/trainer_battery.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Pure, TrainerBattery,
    testing::Values(TrainerCase{"linear", NewLinearTrainer, 0.6, false},
                    TrainerCase{"gp", NewKernelTrainer, 0.75, true}),
    [](const auto& test) { return test.param.name; });

// Believes the same of every row.
class ConstantRegressor final : public Regressor {
 public:
  explicit ConstantRegressor(Belief belief) : belief_(belief) {}

  void Predict(const FeatureMatrix&, size_t,
               std::span<Belief> beliefs) const override {
    for (Belief& belief : beliefs) belief = belief_;
  }
  void Save(internal::Regressor*) const override {}

 private:
  const Belief belief_;
};

// Believes `mean` of every row, and `held_out` of what it has not seen.
FitFunction Believing(double mean, double held_out) {
  return [=](const RegressionProblem& problem,
             const std::stop_token&) -> absl::StatusOr<RegressionFit> {
    RegressionFit fit;
    fit.regressor = std::make_unique<ConstantRegressor>(Belief{mean, 1.0});
    fit.levels = {0.0};
    fit.held_out.assign(problem.targets.size(), {held_out, 1.0});
    return fit;
  };
}

FitFunction Failing(absl::StatusCode code) {
  return [=](const RegressionProblem&, const std::stop_token&) {
    return absl::StatusOr<RegressionFit>(absl::Status(code, "no"));
  };
}

// Four rows of target 1, in two folds.
class FitLikeliestTest : public testing::Test {
 protected:
  absl::StatusOr<LikeliestFit> Fit(const std::vector<FitFunction>& kinds) {
    RegressionProblem problem;
    problem.features = &features_;
    problem.targets = ones_;
    problem.weights = ones_;
    problem.groups = groups_;
    problem.folds = folds_;
    problem.fold_count = 2;
    return FitLikeliest(problem, kinds, {});
  }

 private:
  const FeatureMatrix features_{4, 1, {0.0F, 1.0F, 2.0F, 3.0F}};
  const std::vector<double> ones_ = {1.0, 1.0, 1.0, 1.0};
  const std::vector<int> groups_ = {0, 0, 0, 0};
  const std::vector<int> folds_ = {0, 1, 0, 1};
};

TEST_F(FitLikeliestTest, KeepsTheFirstOfThoseThatTellHeldOutRowsBest) {
  const auto fit = Fit({Believing(0.0, 3.0), Believing(0.0, 1.1),
                        Believing(0.0, 1.1), Believing(1.0, -1.0)});
  ASSERT_THAT(fit, IsOk());
  EXPECT_EQ(fit->kind, 1u);
}

TEST_F(FitLikeliestTest, DoesWithoutAKindThatFails) {
  const auto fit =
      Fit({Failing(absl::StatusCode::kInternal), Believing(1.0, 5.0),
           Failing(absl::StatusCode::kInternal)});
  ASSERT_THAT(fit, IsOk());
  EXPECT_EQ(fit->kind, 1u);
}

TEST_F(FitLikeliestTest, WhatIsNotFiniteIsNeverTheBest) {
  // Wherever it stands, and whether it fails on its own rows or on others.
  for (const auto& bad : {Believing(kNan, 1.0), Believing(1.0, kNan)}) {
    const auto before = Fit({bad, Believing(1.0, 5.0)});
    ASSERT_THAT(before, IsOk());
    EXPECT_EQ(before->kind, 1u);
    const auto after = Fit({Believing(1.0, 5.0), bad});
    ASSERT_THAT(after, IsOk());
    EXPECT_EQ(after->kind, 0u);
    EXPECT_THAT(Fit({bad}), StatusIs(absl::StatusCode::kInternal));
  }
}

TEST_F(FitLikeliestTest, FailsAsTheFirstWhereNoneIsLeft) {
  EXPECT_THAT(Fit({Failing(absl::StatusCode::kInternal),
                   Failing(absl::StatusCode::kFailedPrecondition)}),
              StatusIs(absl::StatusCode::kInternal));
}

TEST_F(FitLikeliestTest, IsStoppedWhateverOthersFound) {
  bool tried = false;
  const FitFunction after = [&tried](const RegressionProblem&,
                                     const std::stop_token&) {
    tried = true;
    return absl::StatusOr<RegressionFit>(absl::InternalError("no"));
  };
  EXPECT_THAT(
      Fit({Believing(1.0, 1.0), Failing(absl::StatusCode::kCancelled), after}),
      StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(tried);
}

}  // namespace
}  // namespace cubicml
