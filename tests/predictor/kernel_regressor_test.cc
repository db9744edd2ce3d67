// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_regressor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

// Any numbers of the right sizes; not those of a fit.
KernelParts MakeParts(size_t rows, size_t columns, Rng* rng) {
  const auto uniform = [rng](double low, double high) {
    return static_cast<float>(low + (high - low) * rng->Uniform());
  };
  KernelParts parts;
  parts.rows = rows;
  parts.columns = columns;
  parts.matern_variance = 1.3;
  parts.linear_variance = 0.2;
  for (size_t c = 0; c < columns; ++c) {
    parts.inverse_lengths.push_back(uniform(0.3, 2.0));
    parts.centres.push_back(uniform(-0.5, 0.5));
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t c = 0; c < columns; ++c) {
      parts.inputs.push_back(uniform(-1.0, 1.0) * parts.inverse_lengths[c]);
    }
    parts.dual_weights.push_back(rng->Normal());
    for (size_t j = 0; j <= i; ++j) {
      parts.whitening.push_back(uniform(-1.0, 1.0) * 0.2F /
                                static_cast<float>(rows));
    }
  }
  return parts;
}

FeatureMatrix MakeFeatures(size_t rows, size_t columns, Rng* rng) {
  FeatureMatrix features{rows, columns, {}};
  for (size_t k = 0; k < rows * columns; ++k) {
    features.values.push_back(static_cast<float>(2.0 * rng->Uniform() - 1.0));
  }
  return features;
}

// By the book, in doubles, one row at a time.
Belief Reference(const KernelParts& parts, const float* x) {
  std::vector<double> covariance;
  double prior = parts.matern_variance;
  for (size_t c = 0; c < parts.columns; ++c) {
    const double d = static_cast<double>(x[c] - parts.centres[c]);
    prior += parts.linear_variance * d * d;
  }
  for (size_t i = 0; i < parts.rows; ++i) {
    double square = 0.0;
    double product = 0.0;
    for (size_t c = 0; c < parts.columns; ++c) {
      const double inverse = static_cast<double>(parts.inverse_lengths[c]);
      const double centre = static_cast<double>(parts.centres[c]);
      const double row =
          static_cast<double>(parts.inputs[i * parts.columns + c]) / inverse;
      const double own = static_cast<double>(x[c]);
      square += (own - row) * (own - row) * inverse * inverse;
      product += (own - centre) * (row - centre);
    }
    const double r = std::sqrt(5.0 * square);
    covariance.push_back(parts.matern_variance * (1.0 + r + r * r / 3.0) *
                             std::exp(-r) +
                         parts.linear_variance * product);
  }
  Belief belief;
  double variance = prior;
  size_t at = 0;
  for (size_t i = 0; i < parts.rows; ++i) {
    belief.mean += parts.dual_weights[i] * covariance[i];
    double white = 0.0;
    for (size_t j = 0; j <= i; ++j) {
      white += static_cast<double>(parts.whitening[at++]) * covariance[j];
    }
    variance -= white * white;
  }
  belief.stddev = std::sqrt(variance);
  return belief;
}

TEST(KernelRegressorTest, BelievesWhatTheFormulaSays) {
  Rng rng(1);
  for (const size_t rows : {1U, 3U, 8U, 9U, 21U}) {
    for (const size_t columns : {1U, 4U, 5U}) {
      const KernelParts parts = MakeParts(rows, columns, &rng);
      const auto regressor = NewKernelRegressor(parts);
      const FeatureMatrix features = MakeFeatures(40, columns, &rng);
      // More than fit side by side, and not from the first.
      std::vector<Belief> beliefs(37);
      regressor->Predict(features, 2, beliefs);
      for (size_t i = 0; i < beliefs.size(); ++i) {
        const Belief expected = Reference(parts, features.row(i + 2));
        EXPECT_NEAR(beliefs[i].mean, expected.mean, 1e-4);
        EXPECT_NEAR(beliefs[i].stddev, expected.stddev, 1e-4);
      }
    }
  }
}

TEST(KernelRegressorTest, TheSameRowGivesTheSameBitsWhereverItStands) {
  Rng rng(2);
  const auto regressor = NewKernelRegressor(MakeParts(11, 3, &rng));
  const FeatureMatrix features = MakeFeatures(33, 3, &rng);
  std::vector<Belief> together(33);
  regressor->Predict(features, 0, together);
  for (size_t i = 0; i < together.size(); ++i) {
    Belief alone;
    regressor->Predict(features, i, {&alone, 1});
    EXPECT_EQ(alone.mean, together[i].mean);
    EXPECT_EQ(alone.stddev, together[i].stddev);
  }
}

TEST(KernelRegressorTest, IsNeverCertain) {
  Rng rng(3);
  KernelParts parts = MakeParts(4, 2, &rng);
  for (float& value : parts.whitening) value *= 1000.0F;
  const auto regressor = NewKernelRegressor(std::move(parts));
  std::vector<Belief> beliefs(5);
  regressor->Predict(MakeFeatures(5, 2, &rng), 0, beliefs);
  for (const Belief& belief : beliefs) EXPECT_GT(belief.stddev, 0.0);
}

TEST(KernelRegressorTest, ALoadedOneSaysTheSame) {
  Rng rng(4);
  const auto regressor = NewKernelRegressor(MakeParts(6, 3, &rng));
  internal::Regressor proto;
  regressor->Save(&proto);
  const auto loaded = LoadKernelRegressor(proto.kernel(), 3);
  ASSERT_THAT(loaded, IsOk());
  const FeatureMatrix features = MakeFeatures(7, 3, &rng);
  std::vector<Belief> before(7);
  std::vector<Belief> after(7);
  regressor->Predict(features, 0, before);
  (*loaded)->Predict(features, 0, after);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].mean, after[i].mean);
    EXPECT_EQ(before[i].stddev, after[i].stddev);
  }
  EXPECT_THAT(LoadKernelRegressor(proto.kernel(), 4),
              StatusIs(absl::StatusCode::kDataLoss));
  proto.mutable_kernel()->mutable_whitening()->RemoveLast();
  EXPECT_THAT(LoadKernelRegressor(proto.kernel(), 3),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace cubicml
