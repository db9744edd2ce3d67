// SPDX-License-Identifier: Apache-2.0

#include "predictor/number_grid.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cubicml {
namespace {

constexpr double kExactBelow = 9007199254740992.0;
// Bounds are held to this, relative to their size: (0.3 - 0) / 0.1 is a little
// below 3.
constexpr double kTolerance = 1e-9;

struct DecimalGrid {
  double scale = 1.0;
  double min = 0.0;   // scaled: an integer
  double step = 0.0;  // likewise
};

// The smallest power of ten that makes integers of both, exactly.
std::optional<DecimalGrid> FindDecimalGrid(double min, double max,
                                           double step) {
  double scale = 1.0;
  for (int places = 0; places <= 15; ++places, scale *= 10.0) {
    const double scaled_min = std::round(min * scale);
    const double scaled_step = std::round(step * scale);
    const double largest = std::max(std::fabs(min), std::fabs(max)) * scale;
    if (largest + scaled_step >= kExactBelow) return std::nullopt;
    if (scaled_min / scale == min && scaled_step / scale == step) {
      return DecimalGrid{scale, scaled_min, scaled_step};
    }
  }
  return std::nullopt;
}

}  // namespace

double CountGridValues(double min, double max, double step) {
  const double steps = max / step - min / step;
  return std::isfinite(steps) ? std::floor(steps * (1.0 + kTolerance)) + 1.0
                              : HUGE_VAL;
}

std::vector<double> MakeGrid(double min, double max, double step) {
  const std::optional<DecimalGrid> decimal = FindDecimalGrid(min, max, step);
  const double limit = max + kTolerance * step;
  std::vector<double> values;
  const double count = CountGridValues(min, max, step) + 1.0;
  for (double k = 0.0; k < count; k += 1.0) {
    // Integers below 2^53 divided by a power of ten up to 10^15: rounded once.
    double value = decimal.has_value()
                       ? (decimal->min + k * decimal->step) / decimal->scale
                       : std::fma(k, step, min);
    if (value > limit) break;
    value = std::min(value, max);
    values.push_back(value == 0.0 ? 0.0 : value);  // no negative zero
  }
  return values;
}

std::vector<double> MakeEvenValues(double min, double max, bool log_scale,
                                   size_t count) {
  std::vector<double> values;
  values.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const double t = static_cast<double>(k) / static_cast<double>(count - 1);
    double value = log_scale
                       ? std::exp(std::log(min) * (1.0 - t) + std::log(max) * t)
                       : min * (1.0 - t) + max * t;
    if (k == 0) value = min;
    if (k + 1 == count) value = max;
    value = std::clamp(value, min, max);
    if (value == 0.0) value = 0.0;  // no negative zero
    // Rounding may repeat values of a very narrow range.
    if (values.empty() || value > values.back()) values.push_back(value);
  }
  return values;
}

}  // namespace cubicml
