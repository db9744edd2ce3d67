// SPDX-License-Identifier: Apache-2.0

#include "predictor/quality.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace cubicml {
namespace {

// What the normal distribution says counts as this many rows.
constexpr double kPriorRows = 10.0;
constexpr size_t kMaxTauRows = 2000;

}  // namespace

std::optional<double> KendallTau(std::span<const double> predicted,
                                 std::span<const double> measured,
                                 std::span<const int> groups) {
  const size_t stride = (predicted.size() + kMaxTauRows - 1) / kMaxTauRows;
  int64_t pairs = 0;
  int64_t sum = 0;
  for (size_t i = 0; i < predicted.size(); i += stride) {
    for (size_t j = 0; j < i; j += stride) {
      if (groups[i] != groups[j] || measured[i] == measured[j]) continue;
      ++pairs;
      if (predicted[i] == predicted[j]) continue;
      const bool agree =
          (predicted[i] < predicted[j]) == (measured[i] < measured[j]);
      sum += agree ? 1 : -1;
    }
  }
  if (pairs == 0) return std::nullopt;
  return static_cast<double>(sum) / static_cast<double>(pairs);
}

std::optional<double> AreaUnderRoc(const std::vector<double>& scores,
                                   const std::vector<bool>& positive) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double wins = 0.0;
  double negatives = 0.0;  // with a lower score
  double positives = 0.0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double tied_positives = 0.0;
    double tied_negatives = 0.0;
    while (end < order.size() && scores[order[end]] == scores[order[begin]]) {
      (positive[order[end++]] ? tied_positives : tied_negatives) += 1.0;
    }
    wins += tied_positives * (negatives + 0.5 * tied_negatives);
    negatives += tied_negatives;
    positives += tied_positives;
    begin = end;
  }
  if (positives == 0.0 || negatives == 0.0) return std::nullopt;
  return wins / (positives * negatives);
}

double ConformalQuantile(std::vector<double> values, double share) {
  const double n = static_cast<double>(values.size());
  const double rank = std::min(std::ceil((n + 1.0) * share), n);
  const auto at = values.begin() + static_cast<ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

SpreadCalibration CalibrateSpread(const std::vector<double>& residuals) {
  SpreadCalibration calibration;
  if (residuals.empty()) return calibration;
  const double n = static_cast<double>(residuals.size());
  double squares = kPriorRows;
  std::vector<double> sizes;
  for (const double z : residuals) {
    squares += z * z;
    sizes.push_back(std::abs(z));
  }
  calibration.stddev_scale = std::sqrt(squares / (n + kPriorRows));
  const double share = n / (n + kPriorRows);
  calibration.interval_scale =
      share * ConformalQuantile(std::move(sizes), 0.9) +
      (1.0 - share) * kQuantile95 * calibration.stddev_scale;
  return calibration;
}

std::optional<double> HeldOutCoverage(const std::vector<double>& residuals,
                                      std::span<const int> folds,
                                      int fold_count) {
  if (residuals.size() < 5 || fold_count < 2) return std::nullopt;
  size_t inside = 0;
  for (int fold = 0; fold < fold_count; ++fold) {
    std::vector<double> others;
    for (size_t i = 0; i < residuals.size(); ++i) {
      if (folds[i] != fold) others.push_back(residuals[i]);
    }
    const double half = CalibrateSpread(others).interval_scale;
    for (size_t i = 0; i < residuals.size(); ++i) {
      if (folds[i] == fold && std::abs(residuals[i]) <= half) ++inside;
    }
  }
  return static_cast<double>(inside) / static_cast<double>(residuals.size());
}

}  // namespace cubicml
