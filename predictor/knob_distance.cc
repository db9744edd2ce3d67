// SPDX-License-Identifier: Apache-2.0

#include "predictor/knob_distance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cubicml {
namespace {

constexpr float kInactive = -1.0F;
// One knob moved over half of its range leaves a correlation of 0.6.
constexpr double kLengthScale = 0.5;

float LocateOnAxis(const Knob& knob, double value) {
  if (std::isnan(value)) return kInactive;
  if (knob.kind == KnobKind::kCategory) return static_cast<float>(value);
  const std::vector<double>& levels = knob.levels;
  if (levels.size() < 2) return 0.0F;
  // A value between two levels (continuous, or of history) stands between
  // their positions.
  const auto above = std::lower_bound(levels.begin(), levels.end(), value);
  if (above == levels.begin()) return 0.0F;
  if (above == levels.end()) return 1.0F;
  const double low = *(above - 1);
  const double share = (value - low) / (*above - low);
  const double index = static_cast<double>(above - levels.begin()) - 1.0;
  return static_cast<float>((index + share) /
                            static_cast<double>(levels.size() - 1));
}

}  // namespace

KnobDistance::KnobDistance(const SearchSpace& space) : knobs_(&space.knobs()) {}

KnobDistance::Position KnobDistance::Locate(const Point& point) const {
  Position position(knobs_->size());
  for (size_t k = 0; k < knobs_->size(); ++k) {
    position[k] = LocateOnAxis((*knobs_)[k], point[k]);
  }
  return position;
}

std::vector<KnobDistance::Position> KnobDistance::Locate(
    const std::vector<Point>& points) const {
  std::vector<Position> positions;
  positions.reserve(points.size());
  for (const Point& point : points) positions.push_back(Locate(point));
  return positions;
}

float KnobDistance::Squared(const Position& a, const Position& b) const {
  float sum = 0.0F;
  for (size_t k = 0; k < knobs_->size(); ++k) {
    const float difference = a[k] - b[k];
    if (difference == 0.0F) continue;
    const bool apart = (*knobs_)[k].kind == KnobKind::kCategory ||
                       a[k] == kInactive || b[k] == kInactive;
    sum += apart ? 1.0F : difference * difference;
  }
  return sum;
}

double KnobDistance::Correlation(const Position& a, const Position& b) const {
  return std::exp(static_cast<double>(Squared(a, b)) /
                  (-2.0 * kLengthScale * kLengthScale));
}

}  // namespace cubicml
