// SPDX-License-Identifier: Apache-2.0
//
// A trainer that always uses one kind of regressor for the score.

#ifndef CUBICML_PREDICTOR_SINGLE_KIND_TRAINER_H_
#define CUBICML_PREDICTOR_SINGLE_KIND_TRAINER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "predictor/regressor.h"
#include "predictor/surrogate_model.h"
#include "predictor/trainer.h"

namespace cubicml {

struct ScoreOptions {
  std::string kind;  // of the predictor
  std::function<absl::StatusOr<RegressionFit>(const RegressionProblem&, Rng,
                                              const std::stop_token&)>
      fit;
  size_t max_rows = 0;  // that `fit` has time for
  ScoreScale scale = ScoreScale::kMetric;
};

std::unique_ptr<Trainer> NewSingleKindTrainer(ScoreOptions score,
                                              HeadOptions heads);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SINGLE_KIND_TRAINER_H_
