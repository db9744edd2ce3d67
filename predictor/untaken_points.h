// SPDX-License-Identifier: Apache-2.0
//
// Random configurations that may still be suggested.

#ifndef CUBICML_PREDICTOR_UNTAKEN_POINTS_H_
#define CUBICML_PREDICTOR_UNTAKEN_POINTS_H_

#include <cstddef>
#include <vector>

#include "base/rng.h"
#include "predictor/searcher.h"

namespace cubicml {

// Up to `count` different valid points that are not taken, in random order:
// uniform where the valid points can be listed. Fewer when there are no more,
// or (in a space too large to list) none were found in reasonable time.
std::vector<Point> SampleUntaken(const SearchProblem& problem, size_t count,
                                 Rng* rng);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_UNTAKEN_POINTS_H_
