// SPDX-License-Identifier: Apache-2.0

#include "server/core/default_neighbour.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cubicml {
namespace {

constexpr int kSamples = 64;
constexpr int64_t kSampleSteps = 100'000;
constexpr int kMaxMoves = 64;
constexpr size_t kNeighbours = 64;

// The default of every knob, whatever the constraints say of them together.
Point Defaults(const SearchSpace& space, const v1::Study& study) {
  ValueMap given;
  for (const v1::Parameter& parameter : study.parameters()) {
    if (!parameter.has_default_value()) continue;
    v1::Value& value = given[parameter.name()];
    value = parameter.default_value();
    if (parameter.repeat() > 0 && !value.has_list_value()) {
      v1::ValueList list;
      for (int i = 0; i < parameter.repeat(); ++i) {
        *list.add_values() = parameter.default_value();
      }
      *value.mutable_list_value() = list;
    }
  }
  const absl::StatusOr<FixedKnobs> fixed = space.ParseFixed(given);
  Point defaults = fixed.ok() ? *fixed : space.Free();
  for (size_t i = 0; i < defaults.size(); ++i) {
    if (std::isnan(defaults[i])) defaults[i] = space.knobs()[i].levels.front();
  }
  return defaults;
}

// Distance between two values of a knob, 0 to 1.
double LevelDistance(const Knob& knob, double a, double b) {
  // Activity follows from other knobs.
  if (std::isnan(a) || std::isnan(b) || a == b) return 0.0;
  if (knob.kind == KnobKind::kCategory) return 1.0;
  double low = knob.levels.front();
  double high = knob.levels.back();
  if (knob.log_scale && low > 0.0 && a > 0.0 && b > 0.0) {
    low = std::log(low);
    high = std::log(high);
    a = std::log(a);
    b = std::log(b);
  }
  return high > low ? std::abs(a - b) / (high - low) : 1.0;
}

double Distance(const SearchSpace& space, const Point& a, const Point& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += LevelDistance(space.knobs()[i], a[i], b[i]);
  }
  return sum;
}

// Keeps the nearer of the two.
void Consider(const SearchSpace& space, const Point& defaults,
              const Point& point, std::optional<Point>* nearest,
              double* distance) {
  const double candidate = Distance(space, defaults, point);
  if (nearest->has_value() && candidate >= *distance) return;
  *nearest = point;
  *distance = candidate;
}

}  // namespace

std::optional<Point> FindDefaultNeighbour(const SearchSpace& space,
                                          const v1::Study& study,
                                          const Context& context, Rng rng,
                                          const std::stop_token& stop) {
  const Point defaults = Defaults(space, study);
  std::optional<Point> nearest;
  double distance = std::numeric_limits<double>::infinity();
  const std::shared_ptr<const std::vector<Point>> all =
      space.ValidPoints(context, space.Free(), kMaxListedPoints, stop);
  if (all != nullptr) {
    for (const Point& point : *all) {
      Consider(space, defaults, point, &nearest, &distance);
    }
    return nearest;
  }
  for (int i = 0; i < kSamples; ++i) {
    const std::optional<Point> point =
        space.Sample(context, space.Free(), kSampleSteps, &rng, stop);
    if (!point.has_value()) break;
    Consider(space, defaults, *point, &nearest, &distance);
  }
  // Downhill from the nearest sample.
  for (int move = 0; move < kMaxMoves && nearest.has_value(); ++move) {
    const double before = distance;
    const std::vector<Point> neighbours = space.Neighbours(
        *nearest, context, space.Free(), kNeighbours, &rng, stop);
    for (const Point& point : neighbours) {
      Consider(space, defaults, point, &nearest, &distance);
    }
    if (distance >= before) break;
  }
  return nearest;
}

}  // namespace cubicml
