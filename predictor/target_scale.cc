// SPDX-License-Identifier: Apache-2.0

#include "predictor/target_scale.h"

#include <algorithm>
#include <cmath>

namespace cubicml {
namespace {

// asinh up to `limit`, then its tangent.
double Compress(double distance, double limit) {
  const double size = std::abs(distance);
  const double end = std::sinh(limit);
  if (size <= end) return std::asinh(distance);
  return std::copysign(limit + (size - end) / std::cosh(limit), distance);
}

// The inverse of Compress.
double Expand(double compressed, double limit) {
  const double size = std::abs(compressed);
  if (size <= limit) return std::sinh(compressed);
  return std::copysign(std::sinh(limit) + (size - limit) * std::cosh(limit),
                       compressed);
}

}  // namespace

double TargetScale::Forward(double value) const {
  double x = logarithmic ? std::log(std::max(value, 0.0)) : value;
  if (width > 0.0) x = Compress((x - focus) / width, limit);
  return (x - centre) / scale;
}

double TargetScale::Inverse(double target) const {
  double x = centre + scale * target;
  if (width > 0.0) x = focus + width * Expand(x, limit);
  // A forecast is finite whatever a model extrapolates.
  return logarithmic ? std::exp(std::clamp(x, -700.0, 700.0)) : x;
}

}  // namespace cubicml
