// SPDX-License-Identifier: Apache-2.0
//
// How a metric is seen by a regressor.

#ifndef CUBICML_PREDICTOR_TARGET_SCALE_H_
#define CUBICML_PREDICTOR_TARGET_SCALE_H_

namespace cubicml {

// A strictly monotone map of the values of a metric to targets. Metrics that
// are always positive (times, rates, memory) are learnt as logarithms: effects
// multiply. Of a metric with a bound, what is far from it shrinks: one loss
// that diverged would otherwise make all differences at the bound look like
// none.
struct TargetScale {
  bool logarithmic = false;
  double centre = 0.0;
  // Not 0; negative where a higher target means a lower value.
  double scale = 1.0;
  // Distances to the focus, on the logarithmic scale where it is one, count in
  // full up to the width and as their logarithm from there (asinh); all in full
  // where the width is 0.
  double focus = 0.0;
  double width = 0.0;
  // From here on, as asinh of a distance in widths, they go on in proportion
  // again: what is measured ends before, and forecasts must not explode.
  double limit = 0.0;

  // Minus infinity for a value that has no logarithm where it needs one;
  // scaled.
  double Forward(double value) const;
  // Of a finite target finite, if logarithmic.
  double Inverse(double target) const;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TARGET_SCALE_H_
