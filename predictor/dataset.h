// SPDX-License-Identifier: Apache-2.0
//
// Rows to train on: plain values, so that no trainer knows protos, SQL or the
// search space.

#ifndef CUBICML_PREDICTOR_DATASET_H_
#define CUBICML_PREDICTOR_DATASET_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace cubicml {

// Row-major features of many configurations.
struct FeatureMatrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<float> values;  // rows * columns

  const float* row(size_t i) const { return values.data() + i * columns; }
};

// One finished trial. NaN stands for a metric that was not measured.
struct DatasetRow {
  // It ran to its end. What violates only a constraint on a metric is feasible
  // here: the forecast of that metric says how likely that is.
  bool feasible = false;
  // By metric, objectives first, in the study's order. Those of an infeasible
  // row may be present.
  std::vector<double> metrics;
  // Rows are ranked only against rows of their group: those of one context.
  int group = 0;
  double weight = 1.0;  // below 1 for history of other studies
};

struct MetricSchema {
  std::string name;
  bool objective = false;
  bool maximize = true;  // objectives only
};

// What is asked of a metric. Both ends are allowed.
struct MetricBound {
  size_t metric = 0;  // as Dataset.metrics
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

struct Dataset {
  std::vector<MetricSchema> metrics;  // objectives first
  // Those of all contexts, in any order: where models have to be sharpest.
  std::vector<MetricBound> bounds;
  FeatureMatrix features;  // one row for each of `rows`
  std::vector<DatasetRow> rows;
};

// INVALID_ARGUMENT      sizes that do not fit together, a feature or weight
//                       that is not finite, a weight that is not positive, an
//                       infinite metric
// FAILED_PRECONDITION   fewer than three rows, or fewer than two different
//                       feasible configurations with a first objective
absl::Status CheckDataset(const Dataset& dataset);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_DATASET_H_
