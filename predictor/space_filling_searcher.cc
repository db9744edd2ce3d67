// SPDX-License-Identifier: Apache-2.0
//
// The initial design: few trials that say much about the whole space.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "predictor/knob_distance.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

// Candidates are compared with each other, so their number is bounded by the
// work that this is.
constexpr size_t kMaxCandidates = 768;
constexpr size_t kMaxWork = 64'000'000;  // knobs times pairs of candidates

// A sample of the valid points, and how far each of them is from the nearest
// point that is observed, running or chosen.
class Coverage {
 public:
  Coverage(const SearchProblem& problem, std::vector<Point> points)
      : distance_(*problem.space),
        points_(std::move(points)),
        positions_(distance_.Locate(points_)),
        nearest_(points_.size(), std::numeric_limits<float>::infinity()),
        chosen_(points_.size(), false) {
    for (const Observation& observation : problem.observations) {
      Approach(distance_.Locate(observation.point));
    }
    for (const Point& point : problem.pending) {
      Approach(distance_.Locate(point));
    }
  }

  size_t size() const { return points_.size(); }

  // Takes one more candidate, which is known from then on. Turn and turn about,
  // starting from the middle: the one that brings the sample nearest to what is
  // known on average (as in k-medoids), and the one farthest from everything
  // that is known (maximin). The first kind finds what the bulk of the space is
  // like; the second looks at the extremes, where the best often is, and what
  // lies between is easier to guess than what lies beyond.
  // REQUIRES: a candidate is left.
  Point ChooseNext() {
    const size_t chosen = known_ % 2 == 0 ? FindMostCentral() : FindFarthest();
    chosen_[chosen] = true;
    Approach(positions_[chosen]);
    return points_[chosen];
  }

 private:
  // Ties go to the first: the sample is in random order.
  size_t FindMostCentral() {
    size_t best = points_.size();
    double best_sum = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < points_.size(); ++i) {
      if (chosen_[i]) continue;
      double sum = 0.0;
      for (size_t j = 0; j < points_.size() && sum < best_sum; ++j) {
        sum += static_cast<double>(std::min(nearest_[j], Between(i, j)));
      }
      if (sum < best_sum || best == points_.size()) {
        best = i;
        best_sum = sum;
      }
    }
    return best;
  }

  size_t FindFarthest() const {
    size_t best = points_.size();
    for (size_t i = 0; i < points_.size(); ++i) {
      if (chosen_[i]) continue;
      if (best == points_.size() || nearest_[i] > nearest_[best]) best = i;
    }
    return best;
  }

  void Approach(const KnobDistance::Position& known) {
    ++known_;
    for (size_t i = 0; i < points_.size(); ++i) {
      nearest_[i] = std::min(
          nearest_[i], std::sqrt(distance_.Squared(positions_[i], known)));
    }
  }

  // Distances between candidates are worked out once, when they are needed.
  float Between(size_t i, size_t j) {
    if (between_.empty()) {
      between_.resize(points_.size() * points_.size());
      for (size_t a = 0; a < points_.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          const float d =
              std::sqrt(distance_.Squared(positions_[a], positions_[b]));
          between_[a * points_.size() + b] = d;
          between_[b * points_.size() + a] = d;
        }
      }
    }
    return between_[i * points_.size() + j];
  }

  const KnobDistance distance_;
  const std::vector<Point> points_;
  const std::vector<KnobDistance::Position> positions_;
  std::vector<float> nearest_;
  std::vector<bool> chosen_;
  size_t known_ = 0;  // points approached
  std::vector<float> between_;
};

// The candidates are a sample of the valid points, so the design lies in what
// the constraints leave, however thin that is, instead of in a cube around it.
class SpaceFillingSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "space-filling"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    const size_t knobs = std::max<size_t>(1, problem.space->knobs().size());
    const auto affordable =
        static_cast<size_t>(std::sqrt(static_cast<double>(kMaxWork / knobs)));
    const size_t sample = std::max(count, std::min(kMaxCandidates, affordable));
    Coverage coverage(problem, SampleUntaken(problem, sample, &rng));
    std::vector<Candidate> design;
    while (design.size() < std::min(count, coverage.size())) {
      if (problem.stop.stop_requested()) break;
      design.push_back({coverage.ChooseNext(), 0.0});
    }
    CUBICML_RETURN_IF_ERROR(problem.CheckStop());
    return design;
  }
};

}  // namespace

std::unique_ptr<Searcher> NewSpaceFillingSearcher() {
  return std::make_unique<SpaceFillingSearcher>();
}

}  // namespace cubicml
