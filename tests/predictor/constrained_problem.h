// SPDX-License-Identifier: Apache-2.0
//
// Synthetic jobs whose metrics have bounds: speed that depends on every knob,
// and a loss or a memory that depends on few of them and is worst where the
// speed is best. And the search of such a job, trial by trial.

#ifndef CUBICML_TESTS_PREDICTOR_CONSTRAINED_PROBLEM_H_
#define CUBICML_TESTS_PREDICTOR_CONSTRAINED_PROBLEM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "predictor/dataset.h"
#include "predictor/featurizer.h"
#include "predictor/metric_bound.h"
#include "predictor/predictor.h"
#include "predictor/search_space.h"
#include "predictor/searcher.h"
#include "predictor/trainer.h"

namespace cubicml {

struct ConstrainedProblem {
  std::shared_ptr<const SearchSpace> space;
  std::unique_ptr<Featurizer> featurizer;
  Context context;
  std::vector<MetricSchema> metrics;  // "qps" first, to be maximised
  // By metric, without noise.
  std::function<std::vector<double>(const Point&)> measure;
  std::vector<double> noise;  // by metric, relative
  std::vector<MetricBound> bounds;
  Point baseline;     // keeps them
  double best = 0.0;  // qps, of the points that keep them
  double feasible_share = 0.0;
};

// What the bounded metrics are like.
enum class ConstraintKind {
  kSmooth,     // loss: two knobs of eight, smooth, no noise
  kCategory,   // loss: two of the values of one category break it
  kMemory,     // memory: the product of two knobs
  kNoisy,      // as kSmooth, with a noise of 0.5 %
  kTight,      // loss of three knobs; a tenth of the space keeps it
  kTwo,        // kSmooth and kMemory at once
  kDiverging,  // as kSmooth, but some corner has half as much again
};

inline constexpr ConstraintKind kConstraintKinds[] = {
    ConstraintKind::kSmooth,   ConstraintKind::kCategory,
    ConstraintKind::kMemory,   ConstraintKind::kNoisy,
    ConstraintKind::kTight,    ConstraintKind::kTwo,
    ConstraintKind::kDiverging};

const char* NameOf(ConstraintKind kind);

// The landscape is drawn from the seed.
ConstrainedProblem MakeConstrainedProblem(ConstraintKind kind, uint64_t seed);

struct ConstrainedTrial {
  Point point;
  bool modelled = false;  // found with a model
  bool kept = false;      // its metrics kept their bounds
  // Percent by which the best so far that kept them is below the best there is;
  // 100 before there is one.
  double regret = 100.0;
  double chance = 1.0;  // of keeping the bounds, by the model
  std::vector<double> measured;
  std::vector<MetricForecast> forecasts;  // where modelled
};

// NewKernelTrainer(), except that it takes every knob for relevant to every
// metric: what a model of few knobs is measured against.
std::unique_ptr<Trainer> NewDenseTrainer();

// The baseline and an initial design, together as many trials as knobs, and
// then a model that is trained after each trial and searched. Without a
// trainer: the baseline, and configurations drawn at random. With more than one
// job all take equally long: they end in the order in which they started.
std::vector<ConstrainedTrial> SearchConstrained(
    const ConstrainedProblem& problem, const Trainer* trainer,
    const Searcher& searcher, uint64_t seed, int trials, int jobs = 1);

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_CONSTRAINED_PROBLEM_H_
