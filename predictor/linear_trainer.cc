// SPDX-License-Identifier: Apache-2.0

#include "predictor/linear_trainer.h"

#include "predictor/linear_regressor.h"
#include "predictor/single_kind_trainer.h"

namespace cubicml {

std::unique_ptr<Trainer> NewLinearTrainer() {
  return NewSingleKindTrainer(
      {"linear",
       [](const RegressionProblem& problem, Rng, const std::stop_token& stop) {
         return FitLinear(problem, stop);
       },
       kMaxLinearRows, ScoreScale::kShareOfBest},
      {{FitLinear}, kMaxLinearRows, {{FitLinear, kMaxLinearRows}}});
}

}  // namespace cubicml
