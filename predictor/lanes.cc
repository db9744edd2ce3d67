// SPDX-License-Identifier: Apache-2.0

#include "predictor/lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// The loops are compiled twice and the loader picks what the processor can do.
// Without fused operations both give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(CUBICML_NO_CLONES)
#define CUBICML_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CUBICML_CLONES
#endif

namespace cubicml {
namespace {

// exp(x) for x <= 0 to seven digits, as arithmetic that runs side by side.
inline float ExpOfNegative(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2 = 0.693147181F;
  const float t = std::max(x, -87.0F) * kLog2E;
  const auto exponent = static_cast<int32_t>(t);              // towards 0
  const float g = (t - static_cast<float>(exponent)) * kLn2;  // (-ln 2, 0]
  float series = 1.0F + g / 8.0F;
  series = 1.0F + g / 7.0F * series;
  series = 1.0F + g / 6.0F * series;
  series = 1.0F + g / 5.0F * series;
  series = 1.0F + g / 4.0F * series;
  series = 1.0F + g / 3.0F * series;
  series = 1.0F + g / 2.0F * series;
  series = 1.0F + g * series;
  return series * std::bit_cast<float>((exponent + 127) << 23);
}

}  // namespace

CUBICML_CLONES
void MultiplyAdd(const float* weights, size_t stride, size_t output_count,
                 size_t input_count, const Lanes* inputs, Lanes* outputs) {
  size_t o = 0;
  // Four outputs at a time: an input is loaded once for all of them.
  for (; o + 4 <= output_count; o += 4) {
    const float* w = weights + o * stride;
    Lanes a = outputs[o];
    Lanes b = outputs[o + 1];
    Lanes c = outputs[o + 2];
    Lanes d = outputs[o + 3];
    for (size_t i = 0; i < input_count; ++i) {
      const Lanes& x = inputs[i];
      const float wa = w[i];
      const float wb = w[stride + i];
      const float wc = w[2 * stride + i];
      const float wd = w[3 * stride + i];
      for (size_t l = 0; l < kLanes; ++l) {
        a[l] += wa * x[l];
        b[l] += wb * x[l];
        c[l] += wc * x[l];
        d[l] += wd * x[l];
      }
    }
    outputs[o] = a;
    outputs[o + 1] = b;
    outputs[o + 2] = c;
    outputs[o + 3] = d;
  }
  for (; o < output_count; ++o) {
    const float* w = weights + o * stride;
    Lanes sum = outputs[o];
    for (size_t i = 0; i < input_count; ++i) {
      for (size_t l = 0; l < kLanes; ++l) sum[l] += w[i] * inputs[i][l];
    }
    outputs[o] = sum;
  }
}

CUBICML_CLONES
void Rectify(size_t count, Lanes* values) {
  for (size_t k = 0; k < count; ++k) {
    for (size_t l = 0; l < kLanes; ++l) {
      values[k][l] = values[k][l] > 0.0F ? values[k][l] : 0.0F;
    }
  }
}

CUBICML_CLONES
void MaternCorrelation(size_t count, Lanes* values) {
  for (size_t k = 0; k < count; ++k) {
    for (size_t l = 0; l < kLanes; ++l) {
      const float square = values[k][l] > 0.0F ? values[k][l] : 0.0F;
      // Beyond, nothing is left of it, but squares would overflow.
      const float r = std::min(std::sqrt(5.0F * square), 90.0F);
      values[k][l] = (1.0F + r + r * r / 3.0F) * ExpOfNegative(-r);
    }
  }
}

}  // namespace cubicml
