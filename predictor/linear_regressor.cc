// SPDX-License-Identifier: Apache-2.0

#include "predictor/linear_regressor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "predictor/linalg.h"

namespace cubicml {
namespace {

// More terms than this are screened by their correlation with the target: the
// cost is cubic in them, and few rows cannot tell more of them apart.
constexpr size_t kMaxTerms = 128;
// Strengths of the prior that are tried, relative to the noise.
constexpr double kRidges[] = {0.01, 0.03, 0.1,  0.3,  1.0,
                              3.0,  10.0, 30.0, 100.0};
// The prior of the noise counts as this many rows whose variance is that share
// of the targets': with fewer rows than columns the fit is exact, and without
// it the spread would collapse to nothing.
constexpr double kNoiseRows = 2.0;
constexpr double kNoiseShare = 0.05;

struct Terms {
  std::vector<uint32_t> columns;
  std::vector<uint32_t> squares;

  size_t size() const { return columns.size() + squares.size(); }
  void Expand(const float* row, double* out) const {
    for (const uint32_t c : columns) *out++ = static_cast<double>(row[c]);
    for (const uint32_t c : squares) {
      const double x = static_cast<double>(row[c]);
      *out++ = x * x;
    }
  }
};

class LinearRegressor : public Regressor {
 public:
  LinearRegressor(Terms terms, std::vector<double> centres,
                  std::vector<double> weights, Matrix factor)
      : terms_(std::move(terms)),
        centres_(std::move(centres)),
        weights_(std::move(weights)),
        factor_(std::move(factor)) {}

  void Predict(const FeatureMatrix& features, size_t begin,
               std::span<Belief> beliefs) const override {
    std::vector<double> x(terms_.size());
    for (size_t i = 0; i < beliefs.size(); ++i) {
      terms_.Expand(features.row(begin + i), x.data());
      double mean = 0.0;
      for (size_t j = 0; j < x.size(); ++j) {
        x[j] -= centres_[j];
        mean += x[j] * weights_[j];
      }
      SolveLower(factor_, &x);
      double variance = 0.0;
      for (const double v : x) variance += v * v;
      beliefs[i] = {mean, std::sqrt(variance)};
    }
  }

  void Save(internal::Regressor* proto) const override {
    internal::LinearRegressor* linear = proto->mutable_linear();
    linear->mutable_columns()->Add(terms_.columns.begin(),
                                   terms_.columns.end());
    linear->mutable_squares()->Add(terms_.squares.begin(),
                                   terms_.squares.end());
    linear->mutable_centres()->Add(centres_.begin(), centres_.end());
    linear->mutable_weights()->Add(weights_.begin(), weights_.end());
    for (size_t i = 0; i < factor_.rows; ++i) {
      const double* row = factor_.row(i);
      linear->mutable_precision_factor()->Add(row, row + i + 1);
    }
  }

 private:
  const Terms terms_;
  const std::vector<double> centres_;
  const std::vector<double> weights_;
  const Matrix factor_;  // Cholesky, of the precision of the weights
};

// Every column that varies, and the squares of those with more than two values.
Terms ChooseTerms(const FeatureMatrix& features) {
  Terms terms;
  for (uint32_t c = 0; c < features.columns; ++c) {
    float low = features.values[c];
    float high = low;
    for (size_t i = 1; i < features.rows; ++i) {
      low = std::min(low, features.row(i)[c]);
      high = std::max(high, features.row(i)[c]);
    }
    if (low == high) continue;
    terms.columns.push_back(c);
    for (size_t i = 0; i < features.rows; ++i) {
      const float x = features.row(i)[c];
      if (x != low && x != high) {
        terms.squares.push_back(c);
        break;
      }
    }
  }
  return terms;
}

// Rows with the mean of their group taken away.
struct Centred {
  Matrix x;                        // rows * terms
  std::vector<double> y;           // rows
  std::vector<double> means;       // of x over all rows
  Matrix group_x;                  // groups * terms
  std::vector<double> group_y;     // groups
  std::vector<double> group_rows;  // sums of weights
};

// Only the rows outside `left_out` count; -1 leaves out none.
Centred Centre(const RegressionProblem& problem, const Terms& terms,
               int left_out) {
  const size_t rows = problem.features->rows;
  const size_t groups = static_cast<size_t>(problem.group_count);
  Centred c;
  c.x = Matrix(rows, terms.size());
  c.y.assign(problem.targets.begin(), problem.targets.end());
  c.means.assign(terms.size(), 0.0);
  c.group_x = Matrix(groups, terms.size());
  c.group_y.assign(groups, 0.0);
  c.group_rows.assign(groups, 0.0);
  double total = 0.0;
  for (size_t i = 0; i < rows; ++i) {
    terms.Expand(problem.features->row(i), c.x.row(i));
    if (problem.folds[i] == left_out) continue;
    const size_t g = static_cast<size_t>(problem.groups[i]);
    const double w = problem.weights[i];
    c.group_rows[g] += w;
    total += w;
    c.group_y[g] += w * c.y[i];
    for (size_t j = 0; j < terms.size(); ++j) {
      c.group_x.row(g)[j] += w * c.x.row(i)[j];
      c.means[j] += w * c.x.row(i)[j];
    }
  }
  for (double& mean : c.means) mean /= std::max(total, 1e-300);
  for (size_t g = 0; g < groups; ++g) {
    if (c.group_rows[g] == 0.0) continue;
    c.group_y[g] /= c.group_rows[g];
    for (size_t j = 0; j < terms.size(); ++j) {
      c.group_x.row(g)[j] /= c.group_rows[g];
    }
  }
  return c;
}

// Sums of squares and products, from which every strength of the prior is
// solved.
struct Moments {
  Matrix xx;
  std::vector<double> xy;
  double yy = 0.0;
  double rows = 0.0;  // less one for each group
};

Moments Accumulate(const RegressionProblem& problem, const Centred& c,
                   int left_out) {
  const size_t terms = c.x.columns;
  Moments m;
  m.xx = Matrix(terms, terms);
  m.xy.assign(terms, 0.0);
  std::vector<double> x(terms);
  for (size_t i = 0; i < c.x.rows; ++i) {
    if (problem.folds[i] == left_out) continue;
    const size_t g = static_cast<size_t>(problem.groups[i]);
    const double w = problem.weights[i];
    const double y = c.y[i] - c.group_y[g];
    for (size_t j = 0; j < terms; ++j) {
      x[j] = c.x.row(i)[j] - c.group_x.row(g)[j];
    }
    for (size_t j = 0; j < terms; ++j) {
      if (x[j] == 0.0) continue;
      const double wx = w * x[j];
      m.xy[j] += wx * y;
      double* row = m.xx.row(j);
      for (size_t k = 0; k <= j; ++k) row[k] += wx * x[k];
    }
    m.yy += w * y * y;
    m.rows += 1.0;
  }
  for (const double rows : c.group_rows) {
    if (rows > 0.0) m.rows -= 1.0;
  }
  m.rows = std::max(m.rows, 0.0);
  return m;
}

struct Solution {
  Matrix factor;  // Cholesky, of xx + ridge
  std::vector<double> weights;
  double noise_variance = 0.0;
  double log_evidence = 0.0;
};

std::optional<Solution> Solve(const Moments& m, double ridge) {
  const size_t terms = m.xy.size();
  Solution s;
  s.factor = m.xx;
  for (size_t j = 0; j < terms; ++j) {
    s.factor.row(j)[j] += ridge;
    for (size_t k = j + 1; k < terms; ++k) {
      s.factor.row(j)[k] = m.xx.row(k)[j];
    }
  }
  if (!Cholesky(&s.factor)) return std::nullopt;
  s.weights = m.xy;
  SolveLower(s.factor, &s.weights);
  double explained = 0.0;
  for (const double w : s.weights) explained += w * w;
  SolveLowerTransposed(s.factor, &s.weights);
  const double prior = m.rows > 0.0 ? kNoiseShare * m.yy / m.rows : 0.0;
  const double energy =
      std::max(m.yy - explained, 0.0) + kNoiseRows * prior + 1e-12;
  s.noise_variance = energy / (m.rows + kNoiseRows);
  s.log_evidence = -0.5 * (m.rows + kNoiseRows) * std::log(s.noise_variance) +
                   0.5 * static_cast<double>(terms) * std::log(ridge) -
                   LogDiagonal(s.factor);
  return s;
}

// How much of the targets each term explains alone.
std::vector<double> Strengths(const RegressionProblem& problem,
                              const Centred& c) {
  const size_t terms = c.x.columns;
  std::vector<double> xx(terms, 0.0);
  std::vector<double> xy(terms, 0.0);
  for (size_t i = 0; i < c.x.rows; ++i) {
    const size_t g = static_cast<size_t>(problem.groups[i]);
    const double w = problem.weights[i];
    for (size_t j = 0; j < terms; ++j) {
      const double x = c.x.row(i)[j] - c.group_x.row(g)[j];
      xx[j] += w * x * x;
      xy[j] += w * x * (c.y[i] - c.group_y[g]);
    }
  }
  for (size_t j = 0; j < terms; ++j) {
    xy[j] = xx[j] > 0.0 ? xy[j] * xy[j] / xx[j] : 0.0;
  }
  return xy;
}

Terms Strongest(const Terms& all, const std::vector<double>& strengths) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strengths[a] > strengths[b];
  });
  order.resize(kMaxTerms);
  std::sort(order.begin(), order.end());
  Terms kept;
  for (const size_t j : order) {
    if (j < all.columns.size()) {
      kept.columns.push_back(all.columns[j]);
    } else {
      kept.squares.push_back(all.squares[j - all.columns.size()]);
    }
  }
  return kept;
}

// Level of a group whose rows are `c`: what is left of its mean.
std::vector<double> Levels(const Centred& c, const std::vector<double>& w) {
  std::vector<double> levels(c.group_y.size(), 0.0);
  double total = 0.0;
  double sum = 0.0;
  for (size_t g = 0; g < levels.size(); ++g) {
    if (c.group_rows[g] == 0.0) continue;
    levels[g] = c.group_y[g];
    for (size_t j = 0; j < w.size(); ++j) {
      levels[g] -= w[j] * (c.group_x.row(g)[j] - c.means[j]);
    }
    total += c.group_rows[g];
    sum += c.group_rows[g] * levels[g];
  }
  for (size_t g = 0; g < levels.size(); ++g) {
    if (c.group_rows[g] == 0.0 && total > 0.0) levels[g] = sum / total;
  }
  return levels;
}

Belief Believe(const Centred& c, const Solution& s, size_t row, double level) {
  std::vector<double> x(s.weights.size());
  Belief belief{level, 0.0};
  for (size_t j = 0; j < x.size(); ++j) {
    x[j] = c.x.row(row)[j] - c.means[j];
    belief.mean += x[j] * s.weights[j];
  }
  SolveLower(s.factor, &x);
  double variance = 0.0;
  for (const double v : x) variance += v * v;
  belief.stddev = std::sqrt(variance * s.noise_variance);
  return belief;
}

absl::Status Stopped() { return absl::CancelledError("training was stopped"); }

}  // namespace

absl::StatusOr<RegressionFit> FitLinear(const RegressionProblem& problem,
                                        const std::stop_token& stop) {
  Terms terms = ChooseTerms(*problem.features);
  Centred centred = Centre(problem, terms, -1);
  if (terms.size() > kMaxTerms) {
    terms = Strongest(terms, Strengths(problem, centred));
    centred = Centre(problem, terms, -1);
  }
  const Moments moments = Accumulate(problem, centred, -1);
  std::optional<Solution> best;
  double best_ridge = 1.0;
  for (const double ridge : kRidges) {
    if (stop.stop_requested()) return Stopped();
    std::optional<Solution> solution = Solve(moments, ridge);
    if (solution.has_value() &&
        (!best.has_value() || solution->log_evidence > best->log_evidence)) {
      best = std::move(solution);
      best_ridge = ridge;
    }
  }
  if (!best.has_value()) {
    return absl::InternalError("the linear model has no solution");
  }
  RegressionFit fit;
  fit.levels = Levels(centred, best->weights);
  fit.noise = std::sqrt(best->noise_variance);
  fit.held_out.resize(problem.features->rows);
  for (int fold = 0; fold < problem.fold_count; ++fold) {
    if (stop.stop_requested()) return Stopped();
    const int left_out = problem.fold_count > 1 ? fold : -1;
    const Centred c = Centre(problem, terms, left_out);
    const std::optional<Solution> s =
        Solve(Accumulate(problem, c, left_out), best_ridge);
    if (!s.has_value()) {
      return absl::InternalError("the linear model of a fold has no solution");
    }
    const std::vector<double> levels = Levels(c, s->weights);
    for (size_t i = 0; i < fit.held_out.size(); ++i) {
      if (problem.folds[i] != fold) continue;
      const size_t g = static_cast<size_t>(problem.groups[i]);
      fit.held_out[i] = Believe(c, *s, i, levels[g]);
    }
  }
  Matrix factor = std::move(best->factor);
  for (double& value : factor.values) value /= fit.noise;
  fit.regressor = std::make_unique<LinearRegressor>(
      std::move(terms), std::move(centred.means), std::move(best->weights),
      std::move(factor));
  return fit;
}

absl::StatusOr<std::unique_ptr<Regressor>> LoadLinearRegressor(
    const internal::LinearRegressor& proto, size_t columns) {
  Terms terms;
  terms.columns.assign(proto.columns().begin(), proto.columns().end());
  terms.squares.assign(proto.squares().begin(), proto.squares().end());
  const auto outside = [&](uint32_t c) { return c >= columns; };
  const size_t n = terms.size();
  if (std::any_of(terms.columns.begin(), terms.columns.end(), outside) ||
      std::any_of(terms.squares.begin(), terms.squares.end(), outside) ||
      n > kMaxTerms || static_cast<size_t>(proto.centres_size()) != n ||
      static_cast<size_t>(proto.weights_size()) != n ||
      static_cast<size_t>(proto.precision_factor_size()) != n * (n + 1) / 2) {
    return absl::DataLossError("a linear model does not fit together");
  }
  Matrix factor(n, n);
  int next = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      factor.row(i)[j] = proto.precision_factor(next++);
    }
  }
  return std::make_unique<LinearRegressor>(
      std::move(terms),
      std::vector<double>(proto.centres().begin(), proto.centres().end()),
      std::vector<double>(proto.weights().begin(), proto.weights().end()),
      std::move(factor));
}

}  // namespace cubicml
