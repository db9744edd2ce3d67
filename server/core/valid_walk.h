// SPDX-License-Identifier: Apache-2.0
//
// Whether there is such a configuration at all: the question behind every
// answer that says that there is none.

#ifndef CUBICML_SERVER_CORE_VALID_WALK_H_
#define CUBICML_SERVER_CORE_VALID_WALK_H_

#include <functional>
#include <stop_token>

#include "predictor/search_space.h"

namespace cubicml {

enum class Existence { kYes, kNo, kUnknown };

// Whether a valid configuration is one that `accept` returns true for; ends
// with the first. kUnknown when it was stopped, or none was found in as many
// steps as we are ready to go.
Existence FindValid(const SearchSpace& space, const Context& context,
                    const FixedKnobs& fixed, const std::stop_token& stop,
                    const std::function<bool(const Point&)>& accept);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_VALID_WALK_H_
