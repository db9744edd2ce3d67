// SPDX-License-Identifier: Apache-2.0
//
// The values of a numeric range: on a step, computed from their index, or
// evenly spaced on a linear or logarithmic scale.

#ifndef CUBICML_PREDICTOR_NUMBER_GRID_H_
#define CUBICML_PREDICTOR_NUMBER_GRID_H_

#include <cstddef>
#include <vector>

namespace cubicml {

// How many values min + k * step there are up to max, as far as doubles tell;
// infinity when too many to count.
// REQUIRES: finite arguments, min <= max, step > 0.
double CountGridValues(double min, double max, double step);

// Value k is the double nearest to min + k * step when both are decimals of at
// most 15 places, so 0.1 by 0.1 gives exactly the doubles that one writes as
// 0.3 and 0.7; else one fused multiply-add. None exceeds max.
// REQUIRES: as above, and CountGridValues(...) <= 10^7.
std::vector<double> MakeGrid(double min, double max, double step);

// At most `count` strictly increasing values from min to max, both included.
// REQUIRES: finite, min <= max, count >= 2; 0 < min when `log_scale`.
std::vector<double> MakeEvenValues(double min, double max, bool log_scale,
                                   size_t count);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_NUMBER_GRID_H_
