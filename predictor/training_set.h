// SPDX-License-Identifier: Apache-2.0
//
// A dataset made ready for regressors: checked, sampled down to what there is
// time for, scaled, its contexts numbered and its rows dealt into folds.

#ifndef CUBICML_PREDICTOR_TRAINING_SET_H_
#define CUBICML_PREDICTOR_TRAINING_SET_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "predictor/dataset.h"
#include "predictor/regressor.h"
#include "predictor/target_scale.h"

namespace cubicml {

// The rows that have a target, as columns.
struct TargetRows {
  TargetScale scale;
  bool constant = false;      // all targets are equal
  std::vector<size_t> index;  // into the rows that they are taken from
  FeatureMatrix features;
  std::vector<double> targets;
  std::vector<double> weights;
  std::vector<int> groups;
  int group_count = 1;
  std::vector<int> folds;
  int fold_count = 1;

  RegressionProblem problem() const;
};

// Rows by which to learn what works.
struct LabelledRows {
  FeatureMatrix features;  // scaled
  std::vector<bool> feasible;
  std::vector<double> weights;
  std::vector<int> folds;
};

struct TrainingSet {
  std::vector<MetricSchema> metrics;
  std::vector<MetricBound> bounds;
  std::vector<float> column_scales;  // at most 1, so that features are in +-1
  FeatureMatrix features;            // scaled
  std::vector<DatasetRow> rows;
  std::vector<int> folds;
  // Drawn from the whole dataset without regard to how good a row is: among
  // the best, failures are rarer than they are.
  LabelledRows labelled;
};

// The errors of CheckDataset. Of more than `max_rows` rows keeps the best of
// each context, the last, and a weighted random sample of the others.
absl::StatusOr<TrainingSet> MakeTrainingSet(const Dataset& dataset,
                                            size_t max_rows, Rng* rng);

// The rows in which the metric was measured, targets standardised. Of more than
// `max_rows` keeps the last, of an objective the best of each context, of a
// metric with bounds those nearest to them, and a random sample of the others.
TargetRows SelectMetric(const TrainingSet& set, size_t metric, size_t max_rows,
                        Rng* rng);
// All labelled rows, the target being 1 where feasible and -1 where not, in one
// group;
// at most `max_rows`, a quarter of them the last and the others at random.
TargetRows SelectFeasibility(const TrainingSet& set, size_t max_rows, Rng* rng);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TRAINING_SET_H_
