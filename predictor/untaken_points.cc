// SPDX-License-Identifier: Apache-2.0

#include "predictor/untaken_points.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

namespace cubicml {
namespace {

// Draws per point that is wanted before we stop hoping for new ones.
constexpr size_t kDrawsPerPoint = 8;
constexpr size_t kMinDraws = 64;
constexpr int64_t kSampleSteps = 100'000;
constexpr int64_t kWalkSteps = 2'000'000;

// Collects different untaken points.
class Collector {
 public:
  explicit Collector(const SearchProblem& problem) : problem_(problem) {}

  void Offer(const Point& point) {
    std::string key = problem_.space->PointKey(point);
    if (problem_.taken.contains(key)) return;
    if (keys_.insert(std::move(key)).second) points_.push_back(point);
  }
  size_t size() const { return points_.size(); }
  std::vector<Point> Take() { return std::move(points_); }

 private:
  const SearchProblem& problem_;
  std::unordered_set<std::string> keys_;
  std::vector<Point> points_;
};

std::vector<Point> SampleListed(const SearchProblem& problem,
                                const std::vector<Point>& all, size_t count,
                                Rng* rng) {
  Collector found(problem);
  const size_t draws = kMinDraws + kDrawsPerPoint * count;
  // Drawing is cheaper than a look at all, as long as few are taken.
  if (count + problem.taken.size() < all.size() / 2) {
    for (size_t i = 0; i < draws && found.size() < count; ++i) {
      found.Offer(all[rng->Below(all.size())]);
    }
    if (found.size() >= count) return found.Take();
  }
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  rng->Shuffle(&order);
  for (size_t i = 0; i < order.size() && found.size() < count; ++i) {
    found.Offer(all[order[i]]);
  }
  return found.Take();
}

std::vector<Point> SampleUnlisted(const SearchProblem& problem, size_t count,
                                  Rng* rng) {
  const SearchSpace& space = *problem.space;
  Collector found(problem);
  const size_t draws = kMinDraws + kDrawsPerPoint * count;
  for (size_t i = 0; i < draws && found.size() < count; ++i) {
    if (problem.stop.stop_requested()) return found.Take();
    const std::optional<Point> point = space.Sample(
        problem.context, problem.fixed, kSampleSteps, rng, problem.stop);
    if (!point.has_value()) break;
    found.Offer(*point);
  }
  if (found.size() > 0) return found.Take();
  // Everything that chance finds is taken: walk until something is not.
  space.Enumerate(
      problem.context, problem.fixed, kWalkSteps,
      [&](const Point& point) {
        found.Offer(point);
        return found.size() < count;
      },
      problem.stop);
  return found.Take();
}

}  // namespace

std::vector<Point> SampleUntaken(const SearchProblem& problem, size_t count,
                                 Rng* rng) {
  if (count == 0) return {};
  const std::shared_ptr<const std::vector<Point>> all =
      problem.space->ValidPoints(problem.context, problem.fixed,
                                 kMaxListedPoints, problem.stop);
  return all != nullptr ? SampleListed(problem, *all, count, rng)
                        : SampleUnlisted(problem, count, rng);
}

}  // namespace cubicml
