// SPDX-License-Identifier: Apache-2.0
//
// How good predictions are, on rows that they were not made from.

#ifndef CUBICML_PREDICTOR_QUALITY_H_
#define CUBICML_PREDICTOR_QUALITY_H_

#include <optional>
#include <span>
#include <vector>

namespace cubicml {

// Kendall's tau over all pairs of rows of one group whose measurements differ:
// (concordant - discordant) / pairs. A pair that the prediction does not order
// counts as neither. Unset without pairs. Of more than 2,000 rows, every k-th
// is used.
std::optional<double> KendallTau(std::span<const double> predicted,
                                 std::span<const double> measured,
                                 std::span<const int> groups);

// Area under the ROC curve: how often a positive row has a higher score than a
// negative one, ties counting half. Unset when all are of one class.
std::optional<double> AreaUnderRoc(const std::vector<double>& scores,
                                   const std::vector<bool>& positive);

// The value that a share of `values` does not exceed; of a finite sample the
// rank is that of a conformal interval, ceil((n + 1) * share).
// REQUIRES: values are not empty, 0 < share < 1.
double ConformalQuantile(std::vector<double> values, double share);

// Half a 90 % interval of a normal distribution, in standard deviations.
inline constexpr double kQuantile95 = 1.6448536269514722;

// Factors that make stated spreads true.
struct SpreadCalibration {
  double stddev_scale = 1.0;
  double interval_scale = kQuantile95;  // half a 90 % interval
};

// From standardised residuals of held-out rows: (measured - mean) / stddev.
SpreadCalibration CalibrateSpread(const std::vector<double>& residuals);

// Share of the rows inside the 90 % interval that the rows of the other folds
// would have given them. Unset with fewer than five rows.
std::optional<double> HeldOutCoverage(const std::vector<double>& residuals,
                                      std::span<const int> folds,
                                      int fold_count);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_QUALITY_H_
