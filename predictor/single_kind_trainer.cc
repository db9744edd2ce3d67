// SPDX-License-Identifier: Apache-2.0

#include "predictor/single_kind_trainer.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "predictor/training_set.h"

namespace cubicml {
namespace {

class SingleKindTrainer : public Trainer {
 public:
  SingleKindTrainer(ScoreOptions score, HeadOptions heads)
      : score_(std::move(score)), heads_(std::move(heads)) {}

  absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset& dataset, Rng rng, std::stop_token stop) const override {
    CUBICML_ASSIGN_OR_RETURN(const TrainingSet set,
                             MakeTrainingSet(dataset, MaxRows(), &rng));
    ScoreFit score = SelectScore(set, score_.scale, score_.max_rows, &rng);
    CUBICML_ASSIGN_OR_RETURN(
        score.fit, score_.fit(score.rows.problem(), Rng(rng()), stop));
    return AssembleSurrogate(set, score_.kind, std::move(score), heads_, &rng,
                             stop);
  }

  absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view checkpoint) const override {
    return LoadSurrogate(checkpoint);
  }

 private:
  size_t MaxRows() const {
    size_t rows = std::max(score_.max_rows, heads_.max_metric_rows);
    for (const RegressorKind& kind : heads_.feasibility) {
      rows = std::max(rows, kind.max_rows);
    }
    return rows;
  }

  const ScoreOptions score_;
  const HeadOptions heads_;
};

}  // namespace

std::unique_ptr<Trainer> NewSingleKindTrainer(ScoreOptions score,
                                              HeadOptions heads) {
  return std::make_unique<SingleKindTrainer>(std::move(score),
                                             std::move(heads));
}

}  // namespace cubicml
