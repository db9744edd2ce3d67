// SPDX-License-Identifier: Apache-2.0
//
// How far two configurations are from each other, whatever a model makes of
// them. Searchers use it to keep the trials of a batch apart.

#ifndef CUBICML_PREDICTOR_KNOB_DISTANCE_H_
#define CUBICML_PREDICTOR_KNOB_DISTANCE_H_

#include <vector>

#include "predictor/search_space.h"

namespace cubicml {

// Every knob is an axis of length 1: levels stand at equal distances, in the
// order of the knob, so that 1, 2, 4, 8 are as far apart on a linear scale as
// on a logarithmic one; two different values of a category are 1 apart, and so
// are an active and an inactive knob. Immutable and thread-safe. The space
// must outlive it.
class KnobDistance {
 public:
  // A point on the axes; -1 where the knob is not active.
  using Position = std::vector<float>;

  explicit KnobDistance(const SearchSpace& space);

  Position Locate(const Point& point) const;
  std::vector<Position> Locate(const std::vector<Point>& points) const;
  // Euclid's distance, squared.
  float Squared(const Position& a, const Position& b) const;
  // 1 for equal positions, towards 0 for far ones: how much a measurement at
  // one of them says about the other.
  double Correlation(const Position& a, const Position& b) const;

 private:
  const std::vector<Knob>* knobs_;  // of the space
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KNOB_DISTANCE_H_
