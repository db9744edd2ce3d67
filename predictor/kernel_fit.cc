// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "predictor/kernel_prior.h"
#include "predictor/kernel_regressor.h"
#include "predictor/linalg.h"

namespace cubicml {
namespace {

// Steps of the search for the kernel's parameters.
constexpr int kFitSteps = 50;
// Rows by which the kernel's parameters are found: each step is cubic in them.
constexpr size_t kMaxSearchRows = 128;
// Up to this many rows each fold is fitted anew.
constexpr size_t kMaxRefitRows = 64;
// Prior variance of a group's level, in units of the targets' variance.
constexpr double kLevelVariance = 10.0;
constexpr double kJitter = 1e-6;

const double kSqrt5 = std::sqrt(5.0);

// Logarithms of what the kernel is made of.
struct Parameters {
  std::vector<double> values;  // a length for each column, then the three

  size_t columns() const { return values.size() - 3; }
  double length(size_t c) const { return std::exp(values[c]); }
  double matern() const { return std::exp(values[columns()]); }
  double linear() const { return std::exp(values[columns() + 1]); }
  double noise() const { return std::exp(values[columns() + 2]); }  // variance
};

// The rows as the fit sees them: targets of unit variance around the means of
// their groups.
struct Sample {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<double> x;  // rows * columns
  std::vector<double> centres;
  std::vector<double> y;
  std::vector<double> group_means;
  double scale = 1.0;
  double varying = 1.0;  // columns, at least 1
};

double CountVarying(const Sample& s) {
  double varying = 0.0;
  for (size_t c = 0; c < s.columns; ++c) {
    for (size_t i = 1; i < s.rows; ++i) {
      if (s.x[i * s.columns + c] != s.x[c]) {
        varying += 1.0;
        break;
      }
    }
  }
  return std::max(varying, 1.0);
}

Sample MakeSample(const RegressionProblem& problem) {
  Sample s;
  s.rows = problem.features->rows;
  s.columns = problem.features->columns;
  s.x.assign(problem.features->values.begin(), problem.features->values.end());
  s.varying = CountVarying(s);
  s.centres.assign(s.columns, 0.0);
  for (size_t i = 0; i < s.rows; ++i) {
    for (size_t c = 0; c < s.columns; ++c) {
      s.centres[c] += s.x[i * s.columns + c] / static_cast<double>(s.rows);
    }
  }
  std::vector<double> weights(static_cast<size_t>(problem.group_count), 0.0);
  s.group_means = weights;
  for (size_t i = 0; i < s.rows; ++i) {
    const size_t g = static_cast<size_t>(problem.groups[i]);
    weights[g] += problem.weights[i];
    s.group_means[g] += problem.weights[i] * problem.targets[i];
  }
  for (size_t g = 0; g < weights.size(); ++g) {
    if (weights[g] > 0.0) s.group_means[g] /= weights[g];
  }
  double squares = 0.0;
  for (size_t i = 0; i < s.rows; ++i) {
    const size_t g = static_cast<size_t>(problem.groups[i]);
    s.y.push_back(problem.targets[i] - s.group_means[g]);
    squares += s.y[i] * s.y[i];
  }
  s.scale = std::sqrt(squares / static_cast<double>(s.rows));
  if (!(s.scale > 0.0)) s.scale = 1.0;
  for (double& y : s.y) y /= s.scale;
  return s;
}

// The covariance of the rows and what its gradient is made of.
struct Covariance {
  Matrix matern;  // correlation
  Matrix slope;   // of the correlation: times squared difference / length^2
  Matrix linear;  // correlation
  Matrix total;
};

Covariance MakeCovariance(const RegressionProblem& problem, const Sample& s,
                          const Parameters& parameters) {
  const size_t n = s.rows;
  Covariance k{Matrix(n, n), Matrix(n, n), Matrix(n, n), Matrix(n, n)};
  std::vector<double> inverse(s.columns);
  for (size_t c = 0; c < s.columns; ++c) {
    inverse[c] = 1.0 / (parameters.length(c) * parameters.length(c));
  }
  const double matern = parameters.matern();
  const double linear = parameters.linear();
  const double per_column = 1.0 / s.varying;
  for (size_t i = 0; i < n; ++i) {
    const double* a = s.x.data() + i * s.columns;
    for (size_t j = 0; j <= i; ++j) {
      const double* b = s.x.data() + j * s.columns;
      double distance = 0.0;
      double product = 0.0;
      for (size_t c = 0; c < s.columns; ++c) {
        const double d = a[c] - b[c];
        distance += d * d * inverse[c];
        product += (a[c] - s.centres[c]) * (b[c] - s.centres[c]);
      }
      const double r = kSqrt5 * std::sqrt(distance);
      const double decay = std::exp(-r);
      k.matern.row(i)[j] = (1.0 + r + r * r / 3.0) * decay;
      k.slope.row(i)[j] = 5.0 / 3.0 * (1.0 + r) * decay;
      k.linear.row(i)[j] = product * per_column;
      double total = matern * k.matern.row(i)[j] + linear * k.linear.row(i)[j];
      if (problem.groups[i] == problem.groups[j]) total += kLevelVariance;
      if (i == j) total += parameters.noise() / problem.weights[i] + kJitter;
      k.total.row(i)[j] = total;
      k.total.row(j)[i] = total;
    }
  }
  return k;
}

// The posterior at some parameters.
struct Posterior {
  double log_density = 0.0;  // up to a constant
  std::vector<double> gradient;
  Matrix precision;           // inverse covariance
  std::vector<double> alpha;  // precision * y
};

Matrix Precision(const Matrix& factor) {
  const Matrix inverse = InvertLower(factor);
  const size_t n = factor.rows;
  Matrix precision(n, n);
  for (size_t k = 0; k < n; ++k) {
    const double* row = inverse.row(k);
    for (size_t i = 0; i <= k; ++i) {
      double* out = precision.row(i);
      const double a = row[i];
      for (size_t j = 0; j <= i; ++j) out[j] += a * row[j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) precision.row(j)[i] = precision.row(i)[j];
  }
  return precision;
}

void AddGradient(const RegressionProblem& problem, const Sample& s,
                 const Parameters& parameters, const Covariance& k,
                 Posterior* p) {
  const size_t d = s.columns;
  p->gradient.assign(d + 3, 0.0);
  const double matern = parameters.matern();
  for (size_t i = 0; i < s.rows; ++i) {
    const double* a = s.x.data() + i * d;
    for (size_t j = 0; j <= i; ++j) {
      // Half of the trace's term, twice for both triangles.
      double g = p->alpha[i] * p->alpha[j] - p->precision.row(i)[j];
      if (i == j) {
        g *= 0.5;
        p->gradient[d + 2] += g * parameters.noise() / problem.weights[i];
      }
      p->gradient[d] += g * matern * k.matern.row(i)[j];
      p->gradient[d + 1] += g * parameters.linear() * k.linear.row(i)[j];
      const double slope = g * matern * k.slope.row(i)[j];
      const double* b = s.x.data() + j * d;
      for (size_t c = 0; c < d; ++c) {
        const double difference = a[c] - b[c];
        p->gradient[c] += slope * difference * difference;
      }
    }
  }
  for (size_t c = 0; c < d; ++c) {
    p->gradient[c] /= parameters.length(c) * parameters.length(c);
  }
}

std::optional<Posterior> Evaluate(const RegressionProblem& problem,
                                  const Sample& s, const KernelPrior& prior,
                                  const Parameters& parameters) {
  const Covariance k = MakeCovariance(problem, s, parameters);
  Matrix factor = k.total;
  if (!Cholesky(&factor)) return std::nullopt;
  Posterior p;
  p.precision = Precision(factor);
  p.alpha.assign(s.rows, 0.0);
  for (size_t i = 0; i < s.rows; ++i) {
    const double* row = p.precision.row(i);
    for (size_t j = 0; j < s.rows; ++j) p.alpha[i] += row[j] * s.y[j];
    p.log_density -= 0.5 * p.alpha[i] * s.y[i];
  }
  p.log_density -= LogDiagonal(factor);
  AddGradient(problem, s, parameters, k, &p);
  for (size_t q = 0; q < parameters.values.size(); ++q) {
    p.log_density += prior.LogDensity(q, parameters.values[q]);
    p.gradient[q] += prior.Slope(q, parameters.values[q]);
  }
  if (!std::isfinite(p.log_density)) return std::nullopt;
  return p;
}

// Some rows of a problem, in one fold.
struct Part {
  FeatureMatrix features;
  std::vector<double> targets;
  std::vector<double> weights;
  std::vector<int> groups;
  std::vector<int> folds;
  RegressionProblem problem;
};

void Take(const RegressionProblem& problem, const std::vector<size_t>& rows,
          Part* part) {
  FeatureMatrix& features = part->features;
  features.columns = problem.features->columns;
  features.rows = rows.size();
  for (const size_t i : rows) {
    const float* row = problem.features->row(i);
    features.values.insert(features.values.end(), row, row + features.columns);
    part->targets.push_back(problem.targets[i]);
    part->weights.push_back(problem.weights[i]);
    part->groups.push_back(problem.groups[i]);
  }
  part->folds.assign(rows.size(), 0);
  part->problem.features = &features;
  part->problem.targets = part->targets;
  part->problem.weights = part->weights;
  part->problem.groups = part->groups;
  part->problem.group_count = problem.group_count;
  part->problem.folds = part->folds;
}

// Parameters and how likely they are.
struct Optimum {
  Parameters parameters;
  double log_density = -HUGE_VAL;
};

// The best parameters that resilient propagation finds: each has a step of its
// own, which grows while the sign of its slope stays and shrinks when it
// changes. It needs no tuning and no second derivative.
absl::Status Climb(const RegressionProblem& problem, const Sample& s,
                   const KernelPrior& prior, Parameters current,
                   const std::stop_token& stop, Optimum* best) {
  std::vector<double> steps(current.values.size(), 0.2);
  std::vector<double> last(current.values.size(), 0.0);
  for (int step = 0; step < kFitSteps; ++step) {
    if (stop.stop_requested()) {
      return absl::CancelledError("training was stopped");
    }
    const std::optional<Posterior> p = Evaluate(problem, s, prior, current);
    if (!p.has_value()) break;
    if (p->log_density > best->log_density) {
      *best = {current, p->log_density};
    }
    for (size_t q = 0; q < steps.size(); ++q) {
      const double agreement = last[q] * p->gradient[q];
      if (agreement > 0.0) steps[q] = std::min(steps[q] * 1.2, 1.0);
      if (agreement < 0.0) steps[q] = std::max(steps[q] * 0.5, 1e-3);
      last[q] = agreement < 0.0 ? 0.0 : p->gradient[q];
      if (last[q] > 0.0) current.values[q] += steps[q];
      if (last[q] < 0.0) current.values[q] -= steps[q];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Parameters> Optimise(const RegressionProblem& problem,
                                    const Sample& s,
                                    KernelPriorMaker make_prior,
                                    const std::stop_token& stop) {
  const KernelPrior prior = make_prior(s.columns, s.varying);
  Optimum best;
  CUBICML_RETURN_IF_ERROR(Climb(problem, s, prior, {prior.means}, stop, &best));
  if (prior.noisy_start.has_value()) {
    Parameters noisy{prior.means};
    noisy.values.back() = *prior.noisy_start;
    CUBICML_RETURN_IF_ERROR(
        Climb(problem, s, prior, std::move(noisy), stop, &best));
  }
  if (!std::isfinite(best.log_density)) {
    return absl::InternalError("the covariance is singular");
  }
  return std::move(best.parameters);
}

// Beliefs about each fold without its rows, in closed form, for the parameters
// that all rows led to: the block of the
// precision that belongs to a fold says what its own rows add.
absl::Status FillHeldOut(const RegressionProblem& problem, const Sample& s,
                         const Posterior& p, double noise, RegressionFit* fit) {
  fit->held_out.resize(s.rows);
  for (int fold = 0; fold < problem.fold_count; ++fold) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < s.rows; ++i) {
      if (problem.folds[i] == fold) rows.push_back(i);
    }
    Matrix block(rows.size(), rows.size());
    std::vector<double> residual(rows.size());
    for (size_t a = 0; a < rows.size(); ++a) {
      residual[a] = p.alpha[rows[a]];
      for (size_t b = 0; b < rows.size(); ++b) {
        block.row(a)[b] = p.precision.row(rows[a])[rows[b]];
      }
    }
    if (!Cholesky(&block)) {
      return absl::InternalError("the covariance of a fold is singular");
    }
    SolveLower(block, &residual);
    SolveLowerTransposed(block, &residual);
    const Matrix inverse = InvertLower(block);
    for (size_t a = 0; a < rows.size(); ++a) {
      double variance = 0.0;
      for (size_t k = a; k < rows.size(); ++k) {
        variance += inverse.row(k)[a] * inverse.row(k)[a];
      }
      const size_t i = rows[a];
      const size_t g = static_cast<size_t>(problem.groups[i]);
      variance = std::max(variance - noise / problem.weights[i], kJitter);
      fit->held_out[i] = {s.group_means[g] + s.scale * (s.y[i] - residual[a]),
                          s.scale * std::sqrt(variance)};
    }
  }
  return absl::OkStatus();
}

// What is needed to predict, from the covariance without the groups' levels.
absl::StatusOr<std::unique_ptr<Regressor>> MakeRegressor(
    const RegressionProblem& problem, const Sample& s,
    const Parameters& parameters, const std::vector<double>& alpha) {
  Matrix factor = MakeCovariance(problem, s, parameters).total;
  for (size_t i = 0; i < s.rows; ++i) {
    for (size_t j = 0; j < s.rows; ++j) {
      if (problem.groups[i] == problem.groups[j]) {
        factor.row(i)[j] -= kLevelVariance;
      }
    }
  }
  if (!Cholesky(&factor)) {
    return absl::InternalError("the covariance is singular");
  }
  const Matrix inverse = InvertLower(factor);
  KernelParts parts;
  parts.rows = s.rows;
  parts.columns = s.columns;
  const double variance = s.scale * s.scale;
  parts.matern_variance = parameters.matern() * variance;
  parts.linear_variance = parameters.linear() * variance / s.varying;
  for (size_t c = 0; c < s.columns; ++c) {
    parts.inverse_lengths.push_back(
        static_cast<float>(1.0 / parameters.length(c)));
    parts.centres.push_back(static_cast<float>(s.centres[c]));
  }
  for (size_t i = 0; i < s.rows; ++i) {
    for (size_t c = 0; c < s.columns; ++c) {
      parts.inputs.push_back(
          static_cast<float>(s.x[i * s.columns + c] / parameters.length(c)));
    }
    // The covariance that they multiply is in units of the targets.
    parts.dual_weights.push_back(alpha[i] / s.scale);
    for (size_t j = 0; j <= i; ++j) {
      parts.whitening.push_back(
          static_cast<float>(inverse.row(i)[j] / s.scale));
    }
  }
  return NewKernelRegressor(std::move(parts));
}

// The fit itself, with beliefs about held-out rows left empty.
struct Fitted {
  RegressionFit fit;
  Sample sample;
  Parameters parameters;
  Posterior posterior;
};

absl::StatusOr<Fitted> Fit(const RegressionProblem& problem,
                           KernelPriorMaker make_prior,
                           const std::stop_token& stop) {
  const size_t rows = problem.features->rows;
  const size_t stride = (rows + kMaxSearchRows - 1) / kMaxSearchRows;
  std::vector<size_t> searched;
  for (size_t i = 0; i < rows; i += stride) searched.push_back(i);
  Part part;
  Take(problem, searched, &part);
  Fitted fitted;
  CUBICML_ASSIGN_OR_RETURN(
      fitted.parameters,
      Optimise(part.problem, MakeSample(part.problem), make_prior, stop));
  fitted.sample = MakeSample(problem);
  const Sample& sample = fitted.sample;
  std::optional<Posterior> posterior =
      Evaluate(problem, sample, make_prior(sample.columns, sample.varying),
               fitted.parameters);
  if (!posterior.has_value()) {
    return absl::InternalError("the covariance is singular");
  }
  fitted.posterior = *std::move(posterior);
  RegressionFit& fit = fitted.fit;
  fit.noise = sample.scale * std::sqrt(fitted.parameters.noise());
  CUBICML_ASSIGN_OR_RETURN(fit.regressor,
                           MakeRegressor(problem, sample, fitted.parameters,
                                         fitted.posterior.alpha));
  // A level is what its prior share of the duals says of it.
  fit.levels = sample.group_means;
  for (size_t i = 0; i < sample.rows; ++i) {
    fit.levels[static_cast<size_t>(problem.groups[i])] +=
        kLevelVariance * fitted.posterior.alpha[i] * sample.scale;
  }
  return fitted;
}

// Beliefs about each fold by a fit of its own. With few rows the closed form
// flatters: the parameters have seen the rows that are held out.
absl::Status RefitHeldOut(const RegressionProblem& problem,
                          KernelPriorMaker make_prior,
                          const std::stop_token& stop, RegressionFit* fit) {
  fit->held_out.resize(problem.features->rows);
  for (int fold = 0; fold < problem.fold_count; ++fold) {
    std::vector<size_t> seen;
    for (size_t i = 0; i < fit->held_out.size(); ++i) {
      if (problem.folds[i] != fold) seen.push_back(i);
    }
    Part part;
    Take(problem, seen, &part);
    CUBICML_ASSIGN_OR_RETURN(const Fitted fitted,
                             Fit(part.problem, make_prior, stop));
    double mean_level = 0.0;
    std::vector<bool> known(fitted.fit.levels.size(), false);
    for (const size_t i : seen) {
      const size_t g = static_cast<size_t>(problem.groups[i]);
      known[g] = true;
      mean_level += fitted.fit.levels[g] / static_cast<double>(seen.size());
    }
    for (size_t i = 0; i < fit->held_out.size(); ++i) {
      if (problem.folds[i] != fold) continue;
      const size_t g = static_cast<size_t>(problem.groups[i]);
      Belief& belief = fit->held_out[i];
      fitted.fit.regressor->Predict(*problem.features, i, {&belief, 1});
      belief.mean += known[g] ? fitted.fit.levels[g] : mean_level;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RegressionFit> FitWithPrior(const RegressionProblem& problem,
                                           KernelPriorMaker make_prior,
                                           const std::stop_token& stop) {
  CUBICML_ASSIGN_OR_RETURN(Fitted fitted, Fit(problem, make_prior, stop));
  if (problem.fold_count > 1 && problem.features->rows <= kMaxRefitRows) {
    CUBICML_RETURN_IF_ERROR(
        RefitHeldOut(problem, make_prior, stop, &fitted.fit));
  } else {
    CUBICML_RETURN_IF_ERROR(
        FillHeldOut(problem, fitted.sample, fitted.posterior,
                    fitted.parameters.noise(), &fitted.fit));
  }
  return std::move(fitted.fit);
}

}  // namespace

absl::StatusOr<RegressionFit> FitKernel(const RegressionProblem& problem,
                                        const std::stop_token& stop) {
  return FitWithPrior(problem, MakeSmoothPrior, stop);
}

absl::StatusOr<RegressionFit> FitSparseKernel(const RegressionProblem& problem,
                                              const std::stop_token& stop) {
  return FitWithPrior(problem, MakeSparsePrior, stop);
}

}  // namespace cubicml
