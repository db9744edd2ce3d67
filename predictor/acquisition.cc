// SPDX-License-Identifier: Apache-2.0

#include "predictor/acquisition.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

constexpr double kMinStddev = 1e-9;
// Candidates are scored in pieces, so that a stop is seen soon and features
// stay in the cache.
constexpr size_t kScoredTogether = 1024;
// Running trials that are looked at for each candidate, the last ones: enough
// for any fleet, and it bounds the work.
constexpr size_t kMaxPending = 64;
// Measured points that may be the best by the model, the best by measurement:
// so that the cost of a search does not grow with the history.
constexpr size_t kMaxMeasured = 256;
// No configuration is hopeless: the model of what runs may be wrong, and it
// knows each failure only as a failure.
constexpr double kMinRuns = 1e-3;
// A model of a metric has seen by how much a bound was broken. Were this much
// larger, what is hopeless but promises most would be tried again and again
// once there is little left to gain elsewhere.
constexpr double kMinWithin = 1e-8;

// log(phi(z) + z Phi(z)).
double LogImprovement(double z) {
  constexpr double kLogSqrtTwoPi = 0.91893853320467274178;
  const double log_density = -0.5 * z * z - kLogSqrtTwoPi;
  if (z > -12.0) {
    const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    return std::log(std::exp(log_density) + z * below);
  }
  // Asymptotic: the two terms cancel each other to the last digit.
  const double inverse = 1.0 / (z * z);
  return log_density + std::log(inverse) +
         std::log1p(inverse * (-3.0 + inverse * (15.0 - 105.0 * inverse)));
}

// Of the observations that worked.
std::vector<Point> ListBestMeasured(const SearchProblem& problem) {
  std::vector<std::pair<double, const Point*>> order;
  for (const Observation& observation : problem.observations) {
    if (!observation.feasible || !std::isfinite(observation.objective)) {
      continue;
    }
    const double loss =
        problem.maximize ? -observation.objective : observation.objective;
    order.emplace_back(loss, &observation.point);
  }
  const size_t count = std::min(kMaxMeasured, order.size());
  std::nth_element(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
      order.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i) points.push_back(*order[i].second);
  return points;
}

// A trial that will more likely fail than not is nothing to improve on.
bool IsBelievedToWork(const PointScore& score) {
  return score.log_feasible >= std::log(0.5);
}

double Shrink(double stddev, double correlation) {
  return stddev * std::sqrt(std::max(0.0, 1.0 - correlation * correlation));
}

}  // namespace

double LogExpectedImprovement(double mean, double stddev, double best) {
  const double spread = std::max(stddev, kMinStddev);
  return std::log(spread) + LogImprovement((mean - best) / spread);
}

Acquisition::Acquisition(const SearchProblem& problem)
    : problem_(&problem), distance_(*problem.space), best_(std::nan("")) {
  for (const MetricBound& bound : problem.bounds) {
    bounded_.push_back(bound.metric);
  }
  std::sort(bounded_.begin(), bounded_.end());
  bounded_.erase(std::unique(bounded_.begin(), bounded_.end()), bounded_.end());
}

absl::StatusOr<Acquisition> Acquisition::Create(const SearchProblem& problem) {
  if (problem.predictor == nullptr || problem.featurizer == nullptr) {
    return absl::FailedPreconditionError("this searcher needs a model");
  }
  Acquisition acquisition(problem);
  CUBICML_RETURN_IF_ERROR(acquisition.SetBest());
  const size_t skipped =
      problem.pending.size() - std::min(kMaxPending, problem.pending.size());
  for (size_t i = skipped; i < problem.pending.size(); ++i) {
    acquisition.pending_.push_back(
        acquisition.distance_.Locate(problem.pending[i]));
  }
  return acquisition;
}

// The best is what the model expects of measured points, not what was measured:
// a lucky measurement would never be improved on, and scores have no unit.
absl::Status Acquisition::SetBest() {
  CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> measured,
                           Score(ListBestMeasured(*problem_)));
  for (const PointScore& score : measured) RaiseBest(score);
  CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> pending,
                           Score(problem_->pending));
  for (const PointScore& score : pending) {
    if (IsBelievedToWork(score)) RaiseBest(score);
  }
  return absl::OkStatus();
}

void Acquisition::RaiseBest(const PointScore& score) {
  best_ = std::isnan(best_) ? score.mean : std::max(best_, score.mean);
}

absl::StatusOr<std::vector<Forecast>> Acquisition::MakeForecasts(
    std::span<const Point> points) const {
  return problem_->predictor->Score(
      problem_->featurizer->Featurize(points, problem_->context), bounded_);
}

absl::StatusOr<std::vector<PointScore>> Acquisition::Score(
    std::span<const Point> points) const {
  std::vector<PointScore> scores;
  scores.reserve(points.size());
  for (size_t begin = 0; begin < points.size(); begin += kScoredTogether) {
    CUBICML_RETURN_IF_ERROR(problem_->CheckStop());
    const std::span<const Point> chunk =
        points.subspan(begin, std::min(kScoredTogether, points.size() - begin));
    CUBICML_ASSIGN_OR_RETURN(const std::vector<Forecast> forecasts,
                             MakeForecasts(chunk));
    for (size_t i = 0; i < chunk.size(); ++i) {
      PointScore score;
      score.mean = forecasts[i].score;
      score.stddev = forecasts[i].score_stddev;
      score.log_feasible =
          std::log(std::max(kMinRuns, forecasts[i].feasible_probability)) +
          std::log(std::max(
              kMinWithin,
              ProbabilityTrulyWithin(forecasts[i].metrics, problem_->bounds)));
      if (!pending_.empty()) {
        const KnobDistance::Position position = distance_.Locate(chunk[i]);
        for (const KnobDistance::Position& other : pending_) {
          score.stddev =
              Shrink(score.stddev, distance_.Correlation(position, other));
        }
      }
      score.acquisition = Value(score);
      scores.push_back(score);
    }
  }
  return scores;
}

double Acquisition::Value(const PointScore& score) const {
  // Nothing works yet: the most promising by the model's other contexts.
  if (std::isnan(best_)) return score.mean + score.stddev + score.log_feasible;
  return LogExpectedImprovement(score.mean, score.stddev, best_) +
         score.log_feasible;
}

void Acquisition::Believe(const Point& point, const PointScore& score) {
  believed_.push_back(distance_.Locate(point));
  if (IsBelievedToWork(score)) RaiseBest(score);
}

void Acquisition::Rescore(const KnobDistance::Position& position,
                          PointScore* score) const {
  for (; score->believed < believed_.size(); ++score->believed) {
    const double correlation =
        distance_.Correlation(position, believed_[score->believed]);
    score->stddev = Shrink(score->stddev, correlation);
  }
  score->acquisition = Value(*score);
}

}  // namespace cubicml
