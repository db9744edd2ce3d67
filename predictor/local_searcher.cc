// SPDX-License-Identifier: Apache-2.0
//
// Evolution: a population of good configurations, improved by stepping to
// neighbours that the constraints allow. For spaces too large to score whole.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "predictor/acquisition.h"
#include "predictor/candidate_pool.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

// Candidates scored in one search: about a tenth of a second with a network.
constexpr size_t kBudget = 16'384;
constexpr size_t kFounders = 256;  // random points of each start
constexpr size_t kMeasured = 16;   // of the best measured, for the first
constexpr size_t kPopulation = 48;
constexpr size_t kParents = 8;       // whose neighbours are scored at once
constexpr size_t kNeighbours = 128;  // of one parent

struct Member {
  double acquisition;
  Point point;
  bool expanded;  // its neighbours have been scored
};

bool Better(const Member& a, const Member& b) {
  return a.acquisition > b.acquisition;
}

// One search. Not thread-safe.
class Evolution {
 public:
  Evolution(const SearchProblem& problem, const Acquisition& acquisition,
            CandidatePool* pool, Rng* rng)
      : problem_(problem), acquisition_(acquisition), pool_(pool), rng_(rng) {}

  absl::Status Run() {
    CUBICML_RETURN_IF_ERROR(Admit(BestMeasured()));
    while (scored_ < kBudget) {
      const size_t before = scored_;
      CUBICML_RETURN_IF_ERROR(Admit(SampleUntaken(problem_, kFounders, rng_)));
      CUBICML_RETURN_IF_ERROR(Climb());
      // The whole space has been seen.
      if (scored_ == before) break;
      population_.clear();
    }
    return absl::OkStatus();
  }

 private:
  // The measured configurations that are worth starting from; those running
  // too.
  std::vector<Point> BestMeasured() const {
    std::vector<std::pair<double, const Point*>> order;
    for (const Observation& observation : problem_.observations) {
      if (!observation.feasible || !std::isfinite(observation.objective)) {
        continue;
      }
      const double gain =
          problem_.maximize ? observation.objective : -observation.objective;
      order.emplace_back(gain, &observation.point);
    }
    std::stable_sort(
        order.begin(), order.end(),
        [](const auto& a, const auto& b) { return a.first > b.first; });
    if (order.size() > kMeasured) order.resize(kMeasured);
    std::vector<Point> points;
    for (const auto& [gain, point] : order) {
      if (problem_.space->CheckValid(*point, problem_.context, problem_.fixed)
              .ok()) {
        points.push_back(*point);
      }
    }
    return points;
  }

  // Scores those that are new and lets them into the population.
  absl::Status Admit(std::vector<Point> points) {
    std::erase_if(points, [this](const Point& point) {
      return !seen_.insert(problem_.space->PointKey(point)).second;
    });
    CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> scores,
                             acquisition_.Score(points));
    scored_ += points.size();
    pool_->Offer(points, scores);
    for (size_t i = 0; i < points.size(); ++i) {
      population_.push_back(
          {scores[i].acquisition, std::move(points[i]), false});
    }
    std::stable_sort(population_.begin(), population_.end(), Better);
    if (population_.size() > kPopulation) population_.resize(kPopulation);
    return absl::OkStatus();
  }

  // Until every member of the population is at least as good as all of its
  // neighbours, or the budget is spent.
  absl::Status Climb() {
    while (scored_ < kBudget) {
      CUBICML_RETURN_IF_ERROR(problem_.CheckStop());
      std::vector<Point> children;
      size_t parents = 0;
      for (Member& member : population_) {
        if (member.expanded) continue;
        member.expanded = true;
        std::vector<Point> neighbours = problem_.space->Neighbours(
            member.point, problem_.context, problem_.fixed, kNeighbours, rng_,
            problem_.stop);
        std::move(neighbours.begin(), neighbours.end(),
                  std::back_inserter(children));
        if (++parents == kParents) break;
      }
      if (parents == 0) break;
      CUBICML_RETURN_IF_ERROR(Admit(std::move(children)));
    }
    return absl::OkStatus();
  }

  const SearchProblem& problem_;
  const Acquisition& acquisition_;
  CandidatePool* const pool_;
  Rng* const rng_;
  std::vector<Member> population_;  // the best first
  std::unordered_set<std::string> seen_;
  size_t scored_ = 0;
};

class LocalSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "local"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    CUBICML_ASSIGN_OR_RETURN(Acquisition acquisition,
                             Acquisition::Create(problem));
    CandidatePool pool(problem, count, Rng(rng()));
    CUBICML_RETURN_IF_ERROR(Evolution(problem, acquisition, &pool, &rng).Run());
    return pool.SelectBatch(std::move(acquisition));
  }
};

}  // namespace

std::unique_ptr<Searcher> NewLocalSearcher() {
  return std::make_unique<LocalSearcher>();
}

}  // namespace cubicml
