// SPDX-License-Identifier: Apache-2.0

#include "server/core/valid_walk.h"

#include <cstdint>

namespace cubicml {
namespace {

// As many as the searchers go, so that what they have seen whole is whole here.
constexpr int64_t kMaxSteps = 2'000'000;

}  // namespace

Existence FindValid(const SearchSpace& space, const Context& context,
                    const FixedKnobs& fixed, const std::stop_token& stop,
                    const std::function<bool(const Point&)>& accept) {
  bool found = false;
  const bool all = space.Enumerate(
      context, fixed, kMaxSteps,
      [&](const Point& point) {
        found = accept(point);
        return !found && !stop.stop_requested();
      },
      stop);
  if (found) return Existence::kYes;
  return all ? Existence::kNo : Existence::kUnknown;
}

}  // namespace cubicml
