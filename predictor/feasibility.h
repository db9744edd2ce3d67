// SPDX-License-Identifier: Apache-2.0
//
// Whether a configuration works at all. Out-of-memory and crashes are a class
// of their own, not a bad value of the objective.

#ifndef CUBICML_PREDICTOR_FEASIBILITY_H_
#define CUBICML_PREDICTOR_FEASIBILITY_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "predictor/regressor.h"
#include "predictor/training_set.h"

namespace cubicml {

// A way to fit a regressor, and the rows that it has time for.
struct RegressorKind {
  FitFunction fit;
  size_t max_rows = 0;
};

// A regressor of the labels +1 and -1 whose output is turned into a probability
// by a logistic curve, which is fitted to held-out beliefs (Platt, 1999).
// Immutable and thread-safe.
class FeasibilityModel {
 public:
  // Always `probability`: before anything has failed.
  explicit FeasibilityModel(double probability);
  FeasibilityModel(std::unique_ptr<Regressor> regressor, double offset,
                   double slope);

  // Of rows [begin, begin + probabilities.size()).
  void Predict(const FeatureMatrix& features, size_t begin,
               std::span<double> probabilities) const;

  void Save(internal::FeasibilityModel* proto) const;
  static absl::StatusOr<std::unique_ptr<FeasibilityModel>> Load(
      const internal::FeasibilityModel& proto, size_t columns);

 private:
  std::unique_ptr<Regressor> regressor_;  // null: constant
  double offset_;
  double slope_ = 0.0;
};

struct FeasibilityFit {
  std::unique_ptr<FeasibilityModel> model;
  // Area under the ROC curve of held-out rows; unset when all rows are of one
  // class.
  std::optional<double> auc;
  // Mean negative log likelihood of held-out rows.
  double log_loss = 0.0;
};

// Of the model of each kind keeps the one with the least log loss on held-out
// rows that both kinds have. The errors of the kinds.
absl::StatusOr<FeasibilityFit> FitFeasibility(
    const TrainingSet& set, const std::vector<RegressorKind>& kinds, Rng* rng,
    const std::stop_token& stop);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_FEASIBILITY_H_
