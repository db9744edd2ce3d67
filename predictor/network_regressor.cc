// SPDX-License-Identifier: Apache-2.0

#include "predictor/network_regressor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "predictor/lanes.h"

namespace cubicml {
namespace {

constexpr size_t kMaxLayers = 8;
constexpr size_t kMaxWidth = 4096;
constexpr size_t kMaxMembers = 64;

// Room for one pass.
struct Scratch {
  std::vector<Lanes> in;
  std::vector<Lanes> out;

  explicit Scratch(const NetworkEnsemble& ensemble) {
    const size_t width = *std::max_element(ensemble.layer_sizes.begin(),
                                           ensemble.layer_sizes.end());
    in.resize(width);
    out.resize(width);
  }
};

// At most kLanes rows.
void RunLanes(const NetworkEnsemble& ensemble, size_t member,
              const FeatureMatrix& features, size_t begin,
              std::span<double> outputs, Scratch* scratch) {
  for (size_t c = 0; c < features.columns; ++c) {
    Lanes& x = scratch->in[c];
    x.fill(0.0F);
    for (size_t l = 0; l < outputs.size(); ++l) {
      x[l] = features.row(begin + l)[c];
    }
  }
  const std::vector<size_t>& sizes = ensemble.layer_sizes;
  const float* parameters = ensemble.members[member].parameters.data();
  for (size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const size_t inputs = sizes[layer];
    const size_t outputs_of_layer = sizes[layer + 1];
    const float* biases = parameters + inputs * outputs_of_layer;
    for (size_t o = 0; o < outputs_of_layer; ++o) {
      scratch->out[o].fill(biases[o]);
    }
    MultiplyAdd(parameters, inputs, outputs_of_layer, inputs,
                scratch->in.data(), scratch->out.data());
    if (layer + 2 < sizes.size()) {
      Rectify(outputs_of_layer, scratch->out.data());
    }
    parameters = biases + outputs_of_layer;
    std::swap(scratch->in, scratch->out);
  }
  for (size_t l = 0; l < outputs.size(); ++l) {
    outputs[l] = static_cast<double>(scratch->in[0][l]);
  }
}

class NetworkRegressor : public Regressor {
 public:
  explicit NetworkRegressor(NetworkEnsemble ensemble)
      : ensemble_(std::move(ensemble)) {}

  void Predict(const FeatureMatrix& features, size_t begin,
               std::span<Belief> beliefs) const override {
    Scratch scratch(ensemble_);
    const size_t members = ensemble_.members.size();
    std::vector<double> outputs(members * kLanes);
    for (size_t done = 0; done < beliefs.size(); done += kLanes) {
      const size_t count = std::min(kLanes, beliefs.size() - done);
      for (size_t m = 0; m < members; ++m) {
        RunLanes(ensemble_, m, features, begin + done,
                 std::span<double>(&outputs[m * kLanes], count), &scratch);
      }
      for (size_t l = 0; l < count; ++l) {
        beliefs[done + l] = Combine(&outputs[l]);
      }
    }
  }

  void Save(internal::Regressor* proto) const override {
    internal::NetworkRegressor* network = proto->mutable_network();
    for (const size_t size : ensemble_.layer_sizes) {
      network->add_layer_sizes(static_cast<uint32_t>(size));
    }
    for (const NetworkEnsemble::Member& member : ensemble_.members) {
      internal::NetworkRegressor::Member* saved = network->add_members();
      saved->mutable_parameters()->Add(member.parameters.begin(),
                                       member.parameters.end());
      saved->set_offset(member.offset);
      saved->set_slope(member.slope);
    }
    network->set_spread_scale(ensemble_.spread_scale);
    network->set_spread_floor(ensemble_.spread_floor);
  }

 private:
  // `outputs` of one row, kLanes apart.
  Belief Combine(const double* outputs) const {
    const double count = static_cast<double>(ensemble_.members.size());
    double sum = 0.0;
    double squares = 0.0;
    for (size_t m = 0; m < ensemble_.members.size(); ++m) {
      const NetworkEnsemble::Member& member = ensemble_.members[m];
      const double value = member.offset + member.slope * outputs[m * kLanes];
      sum += value;
      squares += value * value;
    }
    const double mean = sum / count;
    const double variance =
        std::max(squares - sum * mean, 0.0) / std::max(count - 1.0, 1.0);
    return {mean, std::hypot(ensemble_.spread_scale * std::sqrt(variance),
                             ensemble_.spread_floor)};
  }

  const NetworkEnsemble ensemble_;
};

}  // namespace

size_t NetworkEnsemble::parameter_count() const {
  size_t count = 0;
  for (size_t layer = 0; layer + 1 < layer_sizes.size(); ++layer) {
    count += (layer_sizes[layer] + 1) * layer_sizes[layer + 1];
  }
  return count;
}

void RunNetwork(const NetworkEnsemble& ensemble, size_t member,
                const FeatureMatrix& features, size_t begin,
                std::span<double> outputs) {
  Scratch scratch(ensemble);
  for (size_t done = 0; done < outputs.size(); done += kLanes) {
    const size_t count = std::min(kLanes, outputs.size() - done);
    RunLanes(ensemble, member, features, begin + done,
             outputs.subspan(done, count), &scratch);
  }
}

std::unique_ptr<Regressor> NewNetworkRegressor(NetworkEnsemble ensemble) {
  return std::make_unique<NetworkRegressor>(std::move(ensemble));
}

absl::StatusOr<std::unique_ptr<Regressor>> LoadNetworkRegressor(
    const internal::NetworkRegressor& proto, size_t columns) {
  const absl::Status damaged =
      absl::DataLossError("a network does not fit together");
  NetworkEnsemble ensemble;
  ensemble.layer_sizes.assign(proto.layer_sizes().begin(),
                              proto.layer_sizes().end());
  const std::vector<size_t>& sizes = ensemble.layer_sizes;
  if (sizes.size() < 2 || sizes.size() > kMaxLayers ||
      sizes.front() != columns || sizes.back() != 1 ||
      *std::max_element(sizes.begin() + 1, sizes.end()) > kMaxWidth ||
      *std::min_element(sizes.begin() + 1, sizes.end()) == 0 ||
      proto.members_size() < 1 ||
      static_cast<size_t>(proto.members_size()) > kMaxMembers) {
    return damaged;
  }
  const size_t count = ensemble.parameter_count();
  for (const internal::NetworkRegressor::Member& member : proto.members()) {
    if (static_cast<size_t>(member.parameters_size()) != count) return damaged;
    ensemble.members.push_back({std::vector<float>(member.parameters().begin(),
                                                   member.parameters().end()),
                                member.offset(), member.slope()});
  }
  ensemble.spread_scale = proto.spread_scale();
  ensemble.spread_floor = proto.spread_floor();
  return NewNetworkRegressor(std::move(ensemble));
}

}  // namespace cubicml
