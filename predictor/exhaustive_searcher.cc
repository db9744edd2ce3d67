// SPDX-License-Identifier: Apache-2.0
//
// Scores every valid configuration, so its answer is the best there is by the
// model. Also what the other searchers are tested against.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "predictor/acquisition.h"
#include "predictor/candidate_pool.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

constexpr int64_t kMaxPoints = 10'000'000;
// Pruned branches count too, so tightly tied spaces need more than points.
constexpr int64_t kMaxWalkSteps = 100'000'000;
constexpr size_t kWalkedTogether = 4096;

absl::Status TooLarge() {
  return absl::FailedPreconditionError(
      absl::StrCat("the search space has more than ", kMaxPoints,
                   " valid configurations, too many to score them all"));
}

// Points of the space before constraints, capped.
double CountCombinations(const SearchProblem& problem) {
  double combinations = 1.0;
  for (const Knob& knob : problem.space->knobs()) {
    combinations *=
        static_cast<double>(std::max<size_t>(1, knob.levels.size()));
  }
  return combinations;
}

// Walks the valid points in pieces that are scored and offered.
class Walk {
 public:
  Walk(const SearchProblem& problem, const Acquisition& acquisition,
       CandidatePool* pool)
      : problem_(problem), acquisition_(acquisition), pool_(pool) {
    chunk_.reserve(kWalkedTogether);
  }

  absl::Status Run() {
    const bool complete = problem_.space->Enumerate(
        problem_.context, problem_.fixed, kMaxWalkSteps,
        [this](const Point& point) { return Visit(point); }, problem_.stop);
    CUBICML_RETURN_IF_ERROR(status_);
    CUBICML_RETURN_IF_ERROR(problem_.CheckStop());
    if (!complete) return TooLarge();
    return Flush();
  }

 private:
  bool Visit(const Point& point) {
    if (++visited_ > kMaxPoints) {
      status_ = TooLarge();
      return false;
    }
    chunk_.push_back(point);
    if (chunk_.size() == kWalkedTogether) status_ = Flush();
    return status_.ok();
  }

  absl::Status Flush() {
    CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> scores,
                             acquisition_.Score(chunk_));
    pool_->Offer(chunk_, scores);
    chunk_.clear();
    return absl::OkStatus();
  }

  const SearchProblem& problem_;
  const Acquisition& acquisition_;
  CandidatePool* const pool_;
  std::vector<Point> chunk_;
  int64_t visited_ = 0;
  absl::Status status_;
};

// Says so before anything is scored when there are too many points.
absl::Status CheckSize(const SearchProblem& problem) {
  if (CountCombinations(problem) <= static_cast<double>(kMaxPoints)) {
    return absl::OkStatus();
  }
  int64_t points = 0;
  const bool complete = problem.space->Enumerate(
      problem.context, problem.fixed, kMaxWalkSteps,
      [&](const Point&) { return ++points <= kMaxPoints; }, problem.stop);
  CUBICML_RETURN_IF_ERROR(problem.CheckStop());
  return complete ? absl::OkStatus() : TooLarge();
}

class ExhaustiveSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "exhaustive"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    CUBICML_ASSIGN_OR_RETURN(Acquisition acquisition,
                             Acquisition::Create(problem));
    CandidatePool pool(problem, count, rng);
    const std::shared_ptr<const std::vector<Point>> all =
        problem.space->ValidPoints(problem.context, problem.fixed,
                                   kMaxListedPoints, problem.stop);
    if (all != nullptr) {
      for (size_t begin = 0; begin < all->size(); begin += kWalkedTogether) {
        const std::span<const Point> chunk = std::span(*all).subspan(
            begin, std::min(kWalkedTogether, all->size() - begin));
        CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> scores,
                                 acquisition.Score(chunk));
        pool.Offer(chunk, scores);
      }
    } else {
      CUBICML_RETURN_IF_ERROR(CheckSize(problem));
      CUBICML_RETURN_IF_ERROR(Walk(problem, acquisition, &pool).Run());
    }
    return pool.SelectBatch(std::move(acquisition));
  }
};

}  // namespace

std::unique_ptr<Searcher> NewExhaustiveSearcher() {
  return std::make_unique<ExhaustiveSearcher>();
}

}  // namespace cubicml
