// SPDX-License-Identifier: Apache-2.0

#include "predictor/lanes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "base/rng.h"

namespace cubicml {
namespace {

Lanes RandomLanes(Rng* rng) {
  Lanes lanes;
  for (float& value : lanes) value = static_cast<float>(rng->Normal());
  return lanes;
}

// The block of four outputs, and what is left over of it.
TEST(LanesTest, ProductsAreThoseOfPlainSums) {
  Rng rng(1);
  for (size_t outputs = 0; outputs <= 9; ++outputs) {
    for (const size_t inputs : {0U, 1U, 3U, 17U}) {
      const size_t stride = inputs + 2;
      std::vector<float> weights;
      for (size_t k = 0; k < outputs * stride; ++k) {
        weights.push_back(static_cast<float>(rng.Normal()));
      }
      std::vector<Lanes> in;
      for (size_t i = 0; i < inputs; ++i) in.push_back(RandomLanes(&rng));
      // One more, which must stay as it is.
      std::vector<Lanes> out;
      for (size_t o = 0; o <= outputs; ++o) out.push_back(RandomLanes(&rng));
      const std::vector<Lanes> before = out;
      MultiplyAdd(weights.data(), stride, outputs, inputs, in.data(),
                  out.data());
      for (size_t l = 0; l < kLanes; ++l) {
        for (size_t o = 0; o < outputs; ++o) {
          double sum = static_cast<double>(before[o][l]);
          for (size_t i = 0; i < inputs; ++i) {
            sum += static_cast<double>(weights[o * stride + i]) *
                   static_cast<double>(in[i][l]);
          }
          EXPECT_NEAR(out[o][l], sum, 1e-5) << outputs << " " << inputs;
        }
        EXPECT_EQ(out[outputs][l], before[outputs][l]);
      }
    }
  }
}

TEST(LanesTest, RectifiesWhatIsBelowZero) {
  Rng rng(2);
  std::vector<Lanes> values = {RandomLanes(&rng), RandomLanes(&rng),
                               RandomLanes(&rng)};
  const std::vector<Lanes> before = values;
  Rectify(2, values.data());
  for (size_t l = 0; l < kLanes; ++l) {
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(values[k][l], before[k][l] > 0.0F ? before[k][l] : 0.0F);
    }
    EXPECT_EQ(values[2][l], before[2][l]);
  }
}

double MaternOf(double square) {
  const double r = std::sqrt(5.0 * square);
  return (1.0 + r + r * r / 3.0) * std::exp(-r);
}

TEST(LanesTest, CorrelationsAreThoseOfTheFormula) {
  double square = 1e-12;
  while (square < 1e5) {
    Lanes squares;
    for (float& value : squares) {
      value = static_cast<float>(square);
      square *= 1.03;
    }
    Lanes values = squares;
    MaternCorrelation(1, &values);
    for (size_t l = 0; l < kLanes; ++l) {
      const double expected = MaternOf(static_cast<double>(squares[l]));
      EXPECT_NEAR(values[l], expected, 3e-5 * expected + 1e-30) << squares[l];
    }
  }
}

TEST(LanesTest, CorrelationsAtTheEndsAreOneAndNothing) {
  Lanes values{};
  // Rounding makes a squared distance of equal rows negative.
  values[0] = 0.0F;
  values[1] = -1e-6F;
  values[2] = 1e12F;
  values[3] = 3e38F;
  MaternCorrelation(1, &values);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], 1.0F);
  EXPECT_NEAR(values[2], 0.0F, 1e-20F);
  EXPECT_NEAR(values[3], 0.0F, 1e-20F);
}

}  // namespace
}  // namespace cubicml
