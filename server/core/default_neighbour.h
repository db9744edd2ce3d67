// SPDX-License-Identifier: Apache-2.0
//
// Where the defaults of a study break a constraint in some context, the valid
// configuration that is nearest to them is the best guess at what the job would
// have run.

#ifndef CUBICML_SERVER_CORE_DEFAULT_NEIGHBOUR_H_
#define CUBICML_SERVER_CORE_DEFAULT_NEIGHBOUR_H_

#include <optional>
#include <stop_token>

#include "base/rng.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/search_space.h"

namespace cubicml {

// The nearest valid point where the valid ones can be listed, else a near one;
// nullopt when no valid point was found before `stop` was requested.
std::optional<Point> FindDefaultNeighbour(const SearchSpace& space,
                                          const v1::Study& study,
                                          const Context& context, Rng rng,
                                          const std::stop_token& stop);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_DEFAULT_NEIGHBOUR_H_
