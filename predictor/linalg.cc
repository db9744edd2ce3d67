// SPDX-License-Identifier: Apache-2.0

#include "predictor/linalg.h"

#include <algorithm>
#include <cmath>

namespace cubicml {
namespace {

// Four partial sums: the compiler may not reorder a floating-point sum, so a
// single one would wait for each addition.
double Dot(const double* a, const double* b, size_t n) {
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

bool Cholesky(Matrix* a) {
  const size_t n = a->rows;
  for (size_t i = 0; i < n; ++i) {
    double* row_i = a->row(i);
    for (size_t j = 0; j < i; ++j) {
      const double* row_j = a->row(j);
      row_i[j] = (row_i[j] - Dot(row_i, row_j, j)) / row_j[j];
    }
    const double pivot = row_i[i] - Dot(row_i, row_i, i);
    if (!(pivot > 0.0) || !std::isfinite(pivot)) return false;
    row_i[i] = std::sqrt(pivot);
    std::fill(row_i + i + 1, row_i + n, 0.0);
  }
  return true;
}

void SolveLower(const Matrix& lower, std::vector<double>* b) {
  double* x = b->data();
  for (size_t i = 0; i < lower.rows; ++i) {
    const double* row = lower.row(i);
    x[i] = (x[i] - Dot(row, x, i)) / row[i];
  }
}

void SolveLowerTransposed(const Matrix& lower, std::vector<double>* b) {
  double* x = b->data();
  for (size_t i = lower.rows; i-- > 0;) {
    const double* row = lower.row(i);
    x[i] /= row[i];
    for (size_t j = 0; j < i; ++j) x[j] -= row[j] * x[i];
  }
}

Matrix InvertLower(const Matrix& lower) {
  const size_t n = lower.rows;
  Matrix inverse(n, n);
  for (size_t i = 0; i < n; ++i) {
    const double* row = lower.row(i);
    double* out = inverse.row(i);
    for (size_t k = 0; k < i; ++k) {
      const double* other = inverse.row(k);
      for (size_t j = 0; j <= k; ++j) out[j] -= row[k] * other[j];
    }
    for (size_t j = 0; j < i; ++j) out[j] /= row[i];
    out[i] = 1.0 / row[i];
  }
  return inverse;
}

double LogDiagonal(const Matrix& lower) {
  double sum = 0.0;
  for (size_t i = 0; i < lower.rows; ++i) sum += std::log(lower.row(i)[i]);
  return sum;
}

}  // namespace cubicml
