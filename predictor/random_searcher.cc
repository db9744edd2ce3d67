// SPDX-License-Identifier: Apache-2.0
//
// Chance: what every other searcher has to beat, and what a study falls back
// to when it has no model.

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

class RandomSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "random"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    std::vector<Point> points = SampleUntaken(problem, count, &rng);
    CUBICML_RETURN_IF_ERROR(problem.CheckStop());
    std::vector<Candidate> candidates;
    candidates.reserve(points.size());
    for (Point& point : points) candidates.push_back({std::move(point), 0.0});
    return candidates;
  }
};

}  // namespace

std::unique_ptr<Searcher> NewRandomSearcher() {
  return std::make_unique<RandomSearcher>();
}

}  // namespace cubicml
