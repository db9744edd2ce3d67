// SPDX-License-Identifier: Apache-2.0

#include "predictor/linalg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace cubicml {
namespace {

constexpr size_t kSize = 23;

Matrix RandomPositive(uint64_t seed) {
  Rng rng(seed);
  Matrix root(kSize, kSize);
  for (double& value : root.values) value = rng.Normal();
  Matrix a(kSize, kSize);
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      for (size_t k = 0; k < kSize; ++k) {
        a.row(i)[j] += root.row(i)[k] * root.row(j)[k];
      }
    }
    a.row(i)[i] += 0.1;
  }
  return a;
}

TEST(Linalg, SolvesWhatTheFactorStandsFor) {
  const Matrix a = RandomPositive(1);
  Matrix factor = a;
  ASSERT_TRUE(Cholesky(&factor));
  std::vector<double> x(kSize, 1.0);
  SolveLower(factor, &x);
  SolveLowerTransposed(factor, &x);
  for (size_t i = 0; i < kSize; ++i) {
    double sum = 0.0;
    for (size_t j = 0; j < kSize; ++j) sum += a.row(i)[j] * x[j];
    EXPECT_NEAR(sum, 1.0, 1e-8);
  }
}

TEST(Linalg, InvertsTheFactor) {
  Matrix factor = RandomPositive(2);
  ASSERT_TRUE(Cholesky(&factor));
  const Matrix inverse = InvertLower(factor);
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t j = 0; j < kSize; ++j) {
      double sum = 0.0;
      for (size_t k = 0; k < kSize; ++k) {
        sum += factor.row(i)[k] * inverse.row(k)[j];
      }
      EXPECT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-8);
    }
  }
}

TEST(Linalg, RefusesWhatIsNotPositiveDefinite) {
  Matrix indefinite(2, 2);
  indefinite.values = {1.0, 2.0, 2.0, 1.0};
  EXPECT_FALSE(Cholesky(&indefinite));
  Matrix nan(1, 1);
  nan.values = {std::nan("")};
  EXPECT_FALSE(Cholesky(&nan));
}

TEST(Linalg, TheLogarithmOfTheDiagonalIsHalfThatOfTheDeterminant) {
  Matrix a(2, 2);
  a.values = {4.0, 0.0, 0.0, 9.0};
  ASSERT_TRUE(Cholesky(&a));
  EXPECT_NEAR(LogDiagonal(a), std::log(6.0), 1e-12);
}

}  // namespace
}  // namespace cubicml
