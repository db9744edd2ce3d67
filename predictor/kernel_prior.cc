// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_prior.h"

#include <cmath>

namespace cubicml {

double KernelPrior::LogDensity(size_t q, double value) const {
  const double z = (value - means[q]) / stddevs[q];
  return heavy_tails ? -std::log(std::cosh(z)) : -0.5 * z * z;
}

double KernelPrior::Slope(size_t q, double value) const {
  const double z = (value - means[q]) / stddevs[q];
  return -(heavy_tails ? std::tanh(z) : z) / stddevs[q];
}

KernelPrior MakeSmoothPrior(size_t columns, double varying) {
  KernelPrior prior;
  prior.means.assign(columns, std::log(0.35 * std::sqrt(varying)));
  prior.stddevs.assign(columns, 1.0);
  prior.means.insert(prior.means.end(), {0.0, std::log(0.3), std::log(0.003)});
  prior.stddevs.insert(prior.stddevs.end(), {1.0, 1.5, 1.5});
  return prior;
}

KernelPrior MakeSparsePrior(size_t columns, double varying) {
  KernelPrior prior;
  prior.heavy_tails = true;
  prior.noisy_start = std::log(0.3);
  prior.means.assign(columns, std::log(0.35 * std::sqrt(varying)) + 1.5);
  prior.stddevs.assign(columns, 1.0);
  prior.means.insert(prior.means.end(),
                     {0.0, std::log(0.001), std::log(0.005)});
  prior.stddevs.insert(prior.stddevs.end(), {1.0, 1.0, 1.5});
  return prior;
}

}  // namespace cubicml
