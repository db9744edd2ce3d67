// SPDX-License-Identifier: Apache-2.0
//
// How much a trial is worth, from what the model expects of it.

#ifndef CUBICML_PREDICTOR_ACQUISITION_H_
#define CUBICML_PREDICTOR_ACQUISITION_H_

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "predictor/knob_distance.h"
#include "predictor/searcher.h"

namespace cubicml {

// log E[max(0, X - best)] of X ~ Normal(mean, stddev). Finite, and strictly
// ordered, where the expectation itself underflows; with stddev 0 it is that of
// a tiny one. (As logarithm: Ament et al., "Unexpected Improvements to Expected
// Improvement", 2023.)
double LogExpectedImprovement(double mean, double stddev, double best);

// What a candidate is worth.
struct PointScore {
  double mean = 0.0;  // of the model's ranking score
  double stddev = 0.0;
  // Log of the probability that it runs and truly keeps the bounds of its
  // metrics, whatever a noisy measurement might say
  // (MetricForecast::noiseless_share).
  double log_feasible = 0.0;
  // Log of the expected improvement times the probability that it works.
  double acquisition = 0.0;
  // How many points it takes for measured, see Acquisition::Believe.
  size_t believed = 0;
};

// The acquisition of one search: expected improvement of the ranking score over
// the best measured configuration, times the probability of being feasible.
// Running trials count as measured with what the model expects of them
// ("kriging believer"): they raise the best, if they will likely work, and
// uncertainty near them shrinks.
//
// Const methods are thread-safe. The problem must outlive it.
class Acquisition {
 public:
  // FAILED_PRECONDITION when the problem has no predictor; the predictor's
  // errors.
  static absl::StatusOr<Acquisition> Create(const SearchProblem& problem);

  // In the order of `points`. CANCELLED when the search is to stop.
  absl::StatusOr<std::vector<PointScore>> Score(
      std::span<const Point> points) const;

  // Takes the point for measured as the model expects; for the next of a batch.
  void Believe(const Point& point, const PointScore& score);
  // Whether points were taken for measured that the score does not know of.
  bool IsStale(const PointScore& score) const {
    return score.believed < believed_.size();
  }
  // Brings it up to date. What a trial is worth only ever falls by others that
  // are believed, except when the first of them is believed to work while
  // nothing has worked: has_best() is false before and true after.
  void Rescore(const KnobDistance::Position& position, PointScore* score) const;
  bool has_best() const { return !std::isnan(best_); }

  const KnobDistance& distance() const { return distance_; }

 private:
  explicit Acquisition(const SearchProblem& problem);
  absl::Status SetBest();
  // With those metrics that have bounds.
  absl::StatusOr<std::vector<Forecast>> MakeForecasts(
      std::span<const Point> points) const;
  void RaiseBest(const PointScore& score);
  double Value(const PointScore& score) const;

  const SearchProblem* problem_;
  std::vector<size_t> bounded_;  // metrics, each once
  KnobDistance distance_;
  std::vector<KnobDistance::Position> pending_;
  std::vector<KnobDistance::Position> believed_;
  // Ranking score to be improved on; NaN when nothing is known to work.
  double best_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_ACQUISITION_H_
