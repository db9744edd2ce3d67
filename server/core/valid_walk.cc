// SPDX-License-Identifier: Apache-2.0

#include "server/core/valid_walk.h"

#include <cstdint>

namespace cubicml {
namespace {

// As many as the searchers go, so that what they have seen whole is whole here.
constexpr int64_t kMaxSteps = 2'000'000;
constexpr int64_t kFirstSteps = 20'000;
constexpr int64_t kGrowth = 10;

}  // namespace

Existence FindValid(const SearchSpace& space, const Context& context,
                    const FixedKnobs& fixed, const std::stop_token& stop,
                    const std::function<bool(const Point&)>& accept) {
  // In walks of growing length: where nothing is valid a walk asks nobody
  // whether it should go on.
  for (int64_t steps = kFirstSteps; steps <= kMaxSteps; steps *= kGrowth) {
    bool found = false;
    const bool all =
        space.Enumerate(context, fixed, steps, [&](const Point& point) {
          found = accept(point);
          return !found && !stop.stop_requested();
        });
    if (found) return Existence::kYes;
    if (all) return Existence::kNo;
    if (stop.stop_requested()) break;
  }
  return Existence::kUnknown;
}

}  // namespace cubicml
