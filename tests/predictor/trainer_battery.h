// SPDX-License-Identifier: Apache-2.0
//
// What every Trainer must do, whatever it is made of. A new kind joins with one
// INSTANTIATE_TEST_SUITE_P.

#ifndef CUBICML_TESTS_PREDICTOR_TRAINER_BATTERY_H_
#define CUBICML_TESTS_PREDICTOR_TRAINER_BATTERY_H_

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "base/rng.h"
#include "predictor/dataset.h"
#include "predictor/trainer.h"

namespace cubicml {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct TrainerCase {
  std::string name;
  std::function<std::unique_ptr<Trainer>()> make;
  // Held-out Kendall tau of 60 rows of the smooth problem that it must reach.
  double smooth_tau = 0.6;
  // Whether it models what is not additive: a product of two knobs.
  bool learns_products = true;
};

class TrainerBattery : public testing::TestWithParam<TrainerCase> {
 protected:
  std::unique_ptr<Trainer> trainer() const { return GetParam().make(); }
};

// Rows of an objective that is smooth in two of four features, with a best
// value inside, some noise, and failures where the third is large.
struct SyntheticOptions {
  size_t rows = 60;
  int groups = 1;
  double noise = 0.05;
  bool product = false;  // the objective is a product of two features only
  uint64_t seed = 1;
};
Dataset MakeSynthetic(const SyntheticOptions& options);

// The rows `keep` lets through.
Dataset Filter(const Dataset& dataset,
               const std::function<bool(const DatasetRow&)>& keep);

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_TRAINER_BATTERY_H_
