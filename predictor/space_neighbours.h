// SPDX-License-Identifier: Apache-2.0
//
// The neighbourhood of a configuration, for local search.

#ifndef CUBICML_PREDICTOR_SPACE_NEIGHBOURS_H_
#define CUBICML_PREDICTOR_SPACE_NEIGHBOURS_H_

#include <cstddef>
#include <stop_token>
#include <vector>

#include "base/rng.h"
#include "predictor/search_space.h"
#include "predictor/space_model.h"
#include "predictor/space_view.h"

namespace cubicml {

// SearchSpace::Neighbours.
std::vector<Point> FindNeighbours(const SpaceModel& model,
                                  const SpaceView& view, const Point& point,
                                  const FixedKnobs& fixed, size_t limit,
                                  Rng* rng, const std::stop_token& stop);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_NEIGHBOURS_H_
