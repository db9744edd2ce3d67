// SPDX-License-Identifier: Apache-2.0
//
// An ensemble of multilayer perceptrons, answering in plain C++: as fast as
// LibTorch for this size and faster for a few rows, and a checkpoint can be
// read by builds without it. predictor/torch_trainer.cc trains it.

#ifndef CUBICML_PREDICTOR_NETWORK_REGRESSOR_H_
#define CUBICML_PREDICTOR_NETWORK_REGRESSOR_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "predictor/regressor.h"

namespace cubicml {

// Perceptrons of one shape. Hidden layers end in max(0, x).
struct NetworkEnsemble {
  struct Member {
    // Layer by layer: weights (outputs * inputs, row-major), then biases.
    std::vector<float> parameters;
    // The member's prediction is offset + slope * network(x).
    double offset = 0.0;
    double slope = 1.0;
  };
  std::vector<size_t> layer_sizes;  // inputs first, 1 last
  std::vector<Member> members;
  // The stated spread is that over the members times the first, and the second
  // in quadrature.
  double spread_scale = 1.0;
  double spread_floor = 0.0;

  // Of each member.
  size_t parameter_count() const;
};

// Outputs of one member without its offset and slope, of rows
// [begin, begin + outputs.size()).
void RunNetwork(const NetworkEnsemble& ensemble, size_t member,
                const FeatureMatrix& features, size_t begin,
                std::span<double> outputs);

std::unique_ptr<Regressor> NewNetworkRegressor(NetworkEnsemble ensemble);

// DATA_LOSS when the message is not consistent.
absl::StatusOr<std::unique_ptr<Regressor>> LoadNetworkRegressor(
    const internal::NetworkRegressor& proto, size_t columns);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_NETWORK_REGRESSOR_H_
