// SPDX-License-Identifier: Apache-2.0
//
// What the surrogate is made of: models of one real target over scaled
// features. A surrogate has one for the ranking score, one for each metric and
// one for feasibility.

#ifndef CUBICML_PREDICTOR_REGRESSOR_H_
#define CUBICML_PREDICTOR_REGRESSOR_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "cubicml/internal/checkpoint.pb.h"
#include "predictor/dataset.h"

namespace cubicml {

// What a regressor believes of the noiseless target of one row.
struct Belief {
  double mean = 0.0;
  double stddev = 0.0;
};

// Immutable and thread-safe.
class Regressor {
 public:
  virtual ~Regressor() = default;

  // Rows [begin, begin + beliefs.size()) of `features`, whose number of columns
  // is that of training.
  virtual void Predict(const FeatureMatrix& features, size_t begin,
                       std::span<Belief> beliefs) const = 0;

  virtual void Save(internal::Regressor* proto) const = 0;
};

// The inverse of Save. DATA_LOSS when the message is not one of a regressor
// over `columns` columns.
absl::StatusOr<std::unique_ptr<Regressor>> LoadRegressor(
    const internal::Regressor& proto, size_t columns);

// Targets to learn. All spans have one entry for each row of `features`.
struct RegressionProblem {
  const FeatureMatrix* features = nullptr;
  std::span<const double> targets;
  std::span<const double> weights;  // positive
  // 0 .. group_count - 1. Each group has a level of its own, which is not part
  // of what is learnt.
  std::span<const int> groups;
  int group_count = 1;
  // 0 .. fold_count - 1; equal configurations are in one fold.
  std::span<const int> folds;
  int fold_count = 1;
};

struct RegressionFit {
  std::unique_ptr<Regressor> regressor;
  std::vector<double> levels;  // of the groups
  double noise = 0.0;          // standard deviation of a measurement
  // What models that did not see the fold of a row believed of it, the level of
  // its group included. With one fold: of the model itself.
  std::vector<Belief> held_out;
};

// By row: whether some row of its group is outside its fold, so that what is
// held out knows the level of the group. With one fold: always.
std::vector<bool> FindKnownLevels(const RegressionProblem& problem);

// Mean log density, under their held-out beliefs and the noise, of the rows
// whose level is known; of all where none is.
double HeldOutLogDensity(const RegressionProblem& problem,
                         const RegressionFit& fit);

// A way to fit a regressor, e.g. FitKernel.
using FitFunction = std::function<absl::StatusOr<RegressionFit>(
    const RegressionProblem&, const std::stop_token&)>;

struct LikeliestFit {
  RegressionFit fit;
  size_t kind = 0;  // index of what it was made by
};

// Of the kinds the one that tells held-out rows best; of equals, the first.
// Metrics differ in that: a speed has to do with every knob, a memory with few,
// a loss may be noisy. A kind that fails, or is not finite, is left out.
// REQUIRES: there is one.
// CANCELLED when `stop` was requested; the error of the first kind when none is
// left.
absl::StatusOr<LikeliestFit> FitLikeliest(const RegressionProblem& problem,
                                          const std::vector<FitFunction>& kinds,
                                          const std::stop_token& stop);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_REGRESSOR_H_
