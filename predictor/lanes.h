// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of scoring. Candidates are scored a few at a time, side by
// side, so that one instruction works on several of them; results do not
// depend on how many.

#ifndef CUBICML_PREDICTOR_LANES_H_
#define CUBICML_PREDICTOR_LANES_H_

#include <array>
#include <cstddef>

namespace cubicml {

inline constexpr size_t kLanes = 16;

// One number of each of kLanes candidates.
using Lanes = std::array<float, kLanes>;

// outputs[o] += sum over i of weights[o * stride + i] * inputs[i].
void MultiplyAdd(const float* weights, size_t stride, size_t output_count,
                 size_t input_count, const Lanes* inputs, Lanes* outputs);

// values[k] = max(0, values[k]).
void Rectify(size_t count, Lanes* values);

// From squared distances to Matern 5/2 correlations.
void MaternCorrelation(size_t count, Lanes* values);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_LANES_H_
