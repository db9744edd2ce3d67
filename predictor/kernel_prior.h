// SPDX-License-Identifier: Apache-2.0
//
// What a Gaussian process is taken to be like before there are rows: the priors
// of the logarithms of its kernel's parameters, a length for each column, then
// the variances of the Matern part, the linear part and the noise.

#ifndef CUBICML_PREDICTOR_KERNEL_PRIOR_H_
#define CUBICML_PREDICTOR_KERNEL_PRIOR_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace cubicml {

// What is believed of the parameters before there are rows. `stddevs` are the
// scales of normal distributions or, where tails are heavy, of hyperbolic
// secants, whose tails cost a distance and not its square.
struct KernelPrior {
  std::vector<double> means;
  std::vector<double> stddevs;
  bool heavy_tails = false;
  // Another noise to start from: what is noise and what are many wiggles may
  // both explain few rows.
  std::optional<double> noisy_start;

  // Up to a constant, of parameter `q`; and its derivative.
  double LogDensity(size_t q, double value) const;
  double Slope(size_t q, double value) const;
};

// Of `columns` columns, of which `varying` are not constant.
using KernelPriorMaker = KernelPrior (*)(size_t columns, double varying);

// Lengths grow with the root of the number of columns that vary, so that the
// prior of a function stays as smooth whatever their number. Constants were
// chosen on measured tables (tests/bench/surrogate_bench.cc).
KernelPrior MakeSmoothPrior(size_t columns, double varying);

// What says little of the target has a long length, and it takes rows to make
// it shorter; what is left over may be noise or not. No linear part to speak
// of, since that weighs all columns alike. (In the spirit of Eriksson and
// Jankowiak, "High-dimensional Bayesian optimization with sparse axis-aligned
// subspaces", 2021.) Constants were chosen by tests/bench/constraint_bench.cc.
KernelPrior MakeSparsePrior(size_t columns, double varying);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KERNEL_PRIOR_H_
