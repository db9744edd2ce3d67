// SPDX-License-Identifier: Apache-2.0

#include "predictor/linear_trainer.h"

#include <utility>

#include "base/status_macros.h"
#include "predictor/linear_regressor.h"
#include "predictor/surrogate_model.h"
#include "predictor/training_set.h"

namespace cubicml {
namespace {

// Training is linear in the rows.
constexpr size_t kMaxRows = 4000;

class LinearTrainer : public Trainer {
 public:
  absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset& dataset, Rng rng, std::stop_token stop) const override {
    CUBICML_ASSIGN_OR_RETURN(const TrainingSet set,
                             MakeTrainingSet(dataset, kMaxRows, &rng));
    ScoreFit score;
    score.rows = SelectScore(set, kMaxRows, &rng);
    CUBICML_ASSIGN_OR_RETURN(score.fit, FitLinear(score.rows.problem(), stop));
    return AssembleSurrogate(set, "linear", std::move(score),
                             {FitLinear, kMaxRows}, &rng, stop);
  }

  absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view checkpoint) const override {
    return LoadSurrogate(checkpoint);
  }
};

}  // namespace

std::unique_ptr<Trainer> NewLinearTrainer() {
  return std::make_unique<LinearTrainer>();
}

}  // namespace cubicml
