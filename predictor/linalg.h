// SPDX-License-Identifier: Apache-2.0
//
// The little linear algebra that the small models need: dense, double, exact
// in the order of its operations, so that a seed gives the same bytes.

#ifndef CUBICML_PREDICTOR_LINALG_H_
#define CUBICML_PREDICTOR_LINALG_H_

#include <cstddef>
#include <vector>

namespace cubicml {

// Row-major.
struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(size_t row_count, size_t column_count)
      : rows(row_count),
        columns(column_count),
        values(row_count * column_count, 0.0) {}

  double* row(size_t i) { return values.data() + i * columns; }
  const double* row(size_t i) const { return values.data() + i * columns; }
};

// Replaces a symmetric matrix by its lower Cholesky factor (the upper triangle
// becomes 0). False, and `a` is spoilt, when it is not positive definite.
bool Cholesky(Matrix* a);

// b := L^-1 b.
void SolveLower(const Matrix& lower, std::vector<double>* b);
// b := L^-T b.
void SolveLowerTransposed(const Matrix& lower, std::vector<double>* b);

// The inverse of a lower triangular matrix.
Matrix InvertLower(const Matrix& lower);

// Sum of the logarithms of the diagonal.
double LogDiagonal(const Matrix& lower);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_LINALG_H_
