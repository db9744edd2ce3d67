// SPDX-License-Identifier: Apache-2.0
//
// The initial design: few trials that say much about the whole space.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "predictor/knob_distance.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

constexpr size_t kMinCandidates = 512;
constexpr size_t kCandidatesPerPoint = 8;

// Greedily takes the candidate that is farthest from the nearest one observed,
// running or taken before (maximin). The candidates are a sample of the valid
// points, so the design lies in what the constraints leave, however thin that
// is, instead of in a cube around it.
class SpaceFillingSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "space-filling"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    std::vector<Point> points = SampleUntaken(
        problem, std::max(kMinCandidates, kCandidatesPerPoint * count), &rng);
    const KnobDistance distance(*problem.space);
    const std::vector<KnobDistance::Position> positions =
        distance.Locate(points);
    std::vector<float> nearest(points.size(),
                               std::numeric_limits<float>::max());
    const auto approach = [&](const KnobDistance::Position& other) {
      for (size_t i = 0; i < points.size(); ++i) {
        nearest[i] =
            std::min(nearest[i], distance.Squared(positions[i], other));
      }
    };
    for (const Observation& observation : problem.observations) {
      approach(distance.Locate(observation.point));
    }
    for (const Point& point : problem.pending) approach(distance.Locate(point));
    std::vector<Candidate> design;
    while (design.size() < std::min(count, points.size())) {
      if (problem.stop.stop_requested()) break;
      // The first of equal ones: the sample is in random order.
      const size_t farthest = static_cast<size_t>(
          std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
      approach(positions[farthest]);
      nearest[farthest] = -1.0F;  // not again
      design.push_back({points[farthest], 0.0});
    }
    if (problem.stop.stop_requested()) {
      return absl::CancelledError("the search was stopped");
    }
    return design;
  }
};

}  // namespace

std::unique_ptr<Searcher> NewSpaceFillingSearcher() {
  return std::make_unique<SpaceFillingSearcher>();
}

}  // namespace cubicml
