// SPDX-License-Identifier: Apache-2.0
//
// The one Predictor of this project: a ranking score, a head for each metric
// and a feasibility model, whatever regressors they are made of. It answers in
// plain C++, also where LibTorch trained it.

#ifndef CUBICML_PREDICTOR_SURROGATE_MODEL_H_
#define CUBICML_PREDICTOR_SURROGATE_MODEL_H_

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/rng.h"
#include "predictor/feasibility.h"
#include "predictor/predictor.h"
#include "predictor/quality.h"
#include "predictor/regressor.h"
#include "predictor/training_set.h"

namespace cubicml {

// How the first objective is learnt; higher is better.
enum class ScoreScale {
  // As its metric is: logarithms where positive.
  kMetric,
  // As a share of the best of its context, where positive: the bad end is
  // pressed together and the good end, where a search decides, spread out. On
  // measured tables this saves a search about a third of its regret.
  kShareOfBest,
};

struct ScoreFit {
  TargetRows rows;
  RegressionFit fit;
  // kShareOfBest is no scale to forecast the metric from: its head has a
  // regressor of its own.
  ScoreScale scale = ScoreScale::kMetric;
};

// How the heads of metrics and the feasibility model are trained. Feasibility
// is part of every score, so its kinds have to answer fast.
struct HeadOptions {
  // For each metric, the one of these that tells held-out rows best.
  std::vector<FitFunction> metrics;
  size_t max_metric_rows = 0;
  std::vector<RegressorKind> feasibility;
};

// The rows of the first objective on that scale; `fit` is left empty.
ScoreFit SelectScore(const TrainingSet& set, ScoreScale scale, size_t max_rows,
                     Rng* rng);

// Trains what is missing beside the score and puts it all together.
// CANCELLED, or INTERNAL when a forecast of the score, of feasibility or of a
// metric that was measured is not finite.
absl::StatusOr<std::unique_ptr<Predictor>> AssembleSurrogate(
    const TrainingSet& set, absl::string_view kind, ScoreFit score,
    const HeadOptions& heads, Rng* rng, const std::stop_token& stop);

// The inverse of Serialize() of what AssembleSurrogate made. DATA_LOSS for any
// other bytes.
absl::StatusOr<std::unique_ptr<Predictor>> LoadSurrogate(
    absl::string_view checkpoint);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SURROGATE_MODEL_H_
