// SPDX-License-Identifier: Apache-2.0

#include "predictor/linear_trainer.h"

#include "predictor/linear_regressor.h"
#include "predictor/single_kind_trainer.h"

namespace cubicml {
namespace {

// Training is linear in the rows.
constexpr size_t kMaxRows = 4000;

}  // namespace

std::unique_ptr<Trainer> NewLinearTrainer() {
  return NewSingleKindTrainer(
      {"linear",
       [](const RegressionProblem& problem, Rng, const std::stop_token& stop) {
         return FitLinear(problem, stop);
       },
       kMaxRows, ScoreScale::kShareOfBest},
      {FitLinear, kMaxRows, kMaxRows});
}

}  // namespace cubicml
