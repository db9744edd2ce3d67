// SPDX-License-Identifier: Apache-2.0

#include "predictor/torch_trainer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "predictor/kernel_trainer.h"
#include "predictor/network_calibration.h"
#include "predictor/network_regressor.h"
#include "predictor/single_kind_trainer.h"

namespace cubicml {
namespace {

// Up to this many rows each step sees them all; of more it sees the rows of its
// pairs.
constexpr size_t kFullBatch = 512;
constexpr size_t kMaxPairs = 1024;
constexpr size_t kSampledPairs = 256;
constexpr size_t kHidden = 64;
constexpr double kLearningRate = 5e-3;
constexpr double kWeightDecay = 0.01;
// Rows that go through each network while training, over all steps.
constexpr size_t kWork = 100'000;
constexpr size_t kMinSteps = 200;
constexpr size_t kMaxSteps = 400;

// Pairs of rows that one network may compare: `better` is measured higher than
// `worse` and both are of one group and outside its fold.
class PairSampler {
 public:
  PairSampler(const RegressionProblem& problem, int left_out)
      : problem_(&problem) {
    std::vector<std::vector<size_t>> groups(
        static_cast<size_t>(problem.group_count));
    for (size_t i = 0; i < problem.targets.size(); ++i) {
      if (problem.fold_count > 1 && problem.folds[i] == left_out) continue;
      groups[static_cast<size_t>(problem.groups[i])].push_back(i);
    }
    for (std::vector<size_t>& group : groups) {
      // A group of equal rows has no pair.
      const auto differs = [&](size_t i) {
        return problem.targets[i] != problem.targets[group[0]];
      };
      if (std::none_of(group.begin(), group.end(), differs)) continue;
      for (const size_t i : group) rows_.push_back({i, groups_.size()});
      groups_.push_back(std::move(group));
    }
  }

  bool empty() const { return rows_.empty(); }

  std::pair<int64_t, int64_t> Sample(Rng* rng) const {
    while (true) {
      const auto& [first, g] = rows_[rng->Below(rows_.size())];
      const std::vector<size_t>& group = groups_[g];
      const size_t second = group[rng->Below(group.size())];
      const double difference =
          problem_->targets[first] - problem_->targets[second];
      if (difference == 0.0) continue;
      const auto a = static_cast<int64_t>(first);
      const auto b = static_cast<int64_t>(second);
      return difference > 0.0 ? std::pair(a, b) : std::pair(b, a);
    }
  }

 private:
  const RegressionProblem* problem_;
  std::vector<std::pair<size_t, size_t>> rows_;  // row, group
  std::vector<std::vector<size_t>> groups_;
};

// All networks of the ensemble as one batch of matrices.
struct Layers {
  std::vector<torch::Tensor> weights;  // members * inputs * outputs
  std::vector<torch::Tensor> biases;   // members * 1 * outputs

  torch::Tensor Run(torch::Tensor x) const {
    for (size_t layer = 0; layer < weights.size(); ++layer) {
      if (layer > 0) x = torch::relu(x);
      x = torch::baddbmm(biases[layer], x, weights[layer]);
    }
    return x.squeeze(-1);
  }
  std::vector<torch::Tensor> parameters() const {
    std::vector<torch::Tensor> all = weights;
    all.insert(all.end(), biases.begin(), biases.end());
    return all;
  }
};

torch::Tensor NormalTensor(std::vector<int64_t> shape, double stddev,
                           Rng* rng) {
  torch::Tensor tensor = torch::empty(shape, torch::kFloat32);
  float* values = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(stddev * rng->Normal());
  }
  return tensor.requires_grad_(true);
}

Layers MakeLayers(const std::vector<size_t>& sizes, size_t members, Rng* rng) {
  Layers layers;
  const auto m = static_cast<int64_t>(members);
  for (size_t layer = 0; layer + 1 < sizes.size(); ++layer) {
    const auto in = static_cast<int64_t>(sizes[layer]);
    const auto out = static_cast<int64_t>(sizes[layer + 1]);
    const double gain = layer + 2 < sizes.size() ? 2.0 : 1.0;
    layers.weights.push_back(NormalTensor(
        {m, in, out}, std::sqrt(gain / static_cast<double>(in)), rng));
    layers.biases.push_back(NormalTensor({m, 1, out}, 0.1, rng));
  }
  return layers;
}

// The pairs of one step: for each network, indices and the weight of each pair.
struct Batch {
  torch::Tensor better;   // members * pairs
  torch::Tensor worse;    // members * pairs
  torch::Tensor weights;  // members * pairs
};

Batch SampleBatch(const RegressionProblem& problem,
                  const std::vector<PairSampler>& samplers, size_t pairs,
                  Rng* rng) {
  const auto m = static_cast<int64_t>(samplers.size());
  const auto p = static_cast<int64_t>(pairs);
  Batch batch{torch::empty({m, p}, torch::kInt64),
              torch::empty({m, p}, torch::kInt64),
              torch::empty({m, p}, torch::kFloat32)};
  auto* better = batch.better.data_ptr<int64_t>();
  auto* worse = batch.worse.data_ptr<int64_t>();
  auto* weights = batch.weights.data_ptr<float>();
  for (const PairSampler& sampler : samplers) {
    for (size_t k = 0; k < pairs; ++k) {
      std::tie(*better, *worse) = sampler.Sample(rng);
      *weights++ =
          static_cast<float>(problem.weights[static_cast<size_t>(*better++)] *
                             problem.weights[static_cast<size_t>(*worse++)]);
    }
  }
  return batch;
}

// Rows of `x` for each network: members * rows * columns.
torch::Tensor GatherRows(const torch::Tensor& x, const torch::Tensor& index) {
  return x.index_select(0, index.reshape({-1}))
      .reshape({index.size(0), index.size(1), x.size(1)});
}

torch::Tensor PairLoss(const Layers& layers, const torch::Tensor& x,
                       const Batch& batch, bool full) {
  torch::Tensor margin;
  if (full) {
    const torch::Tensor scores =
        layers.Run(x.unsqueeze(0).expand({batch.better.size(0), -1, -1}));
    margin = scores.gather(1, batch.better) - scores.gather(1, batch.worse);
  } else {
    const torch::Tensor scores =
        layers.Run(GatherRows(x, torch::cat({batch.better, batch.worse}, 1)));
    const int64_t pairs = batch.better.size(1);
    margin = scores.narrow(1, 0, pairs) - scores.narrow(1, pairs, pairs);
  }
  const torch::Tensor losses = torch::softplus(-margin) * batch.weights;
  // The networks do not share weights: the sum trains each by its own mean.
  return (losses.sum(1) / batch.weights.sum(1)).sum();
}

absl::Status TrainLayers(const RegressionProblem& problem,
                         const std::vector<PairSampler>& samplers,
                         const Layers& layers, Rng* rng,
                         const std::stop_token& stop) {
  const size_t rows = problem.features->rows;
  const torch::Tensor x =
      torch::from_blob(const_cast<float*>(problem.features->values.data()),
                       {static_cast<int64_t>(rows),
                        static_cast<int64_t>(problem.features->columns)},
                       torch::kFloat32)
          .clone();
  const bool full = rows <= kFullBatch;
  const size_t pairs =
      full ? std::clamp<size_t>(8 * rows, 64, kMaxPairs) : kSampledPairs;
  const size_t steps = std::clamp(kWork / (full ? rows : 2 * kSampledPairs),
                                  kMinSteps, kMaxSteps);
  torch::optim::AdamW optimizer(
      layers.parameters(),
      torch::optim::AdamWOptions(kLearningRate).weight_decay(kWeightDecay));
  for (size_t step = 0; step < steps; ++step) {
    if (stop.stop_requested()) {
      return absl::CancelledError("training was stopped");
    }
    const double progress =
        static_cast<double>(step) / static_cast<double>(steps);
    static_cast<torch::optim::AdamWOptions&>(
        optimizer.param_groups()[0].options())
        .lr(kLearningRate * 0.5 *
            (1.0 + std::cos(std::numbers::pi * progress)));
    optimizer.zero_grad();
    PairLoss(layers, x, SampleBatch(problem, samplers, pairs, rng), full)
        .backward();
    optimizer.step();
  }
  return absl::OkStatus();
}

NetworkEnsemble Export(const Layers& layers, std::vector<size_t> sizes) {
  NetworkEnsemble ensemble;
  ensemble.layer_sizes = std::move(sizes);
  ensemble.members.resize(static_cast<size_t>(layers.weights[0].size(0)));
  for (size_t m = 0; m < ensemble.members.size(); ++m) {
    std::vector<float>& out = ensemble.members[m].parameters;
    for (size_t layer = 0; layer < layers.weights.size(); ++layer) {
      for (const torch::Tensor& tensor :
           {layers.weights[layer][static_cast<int64_t>(m)].t(),
            layers.biases[layer][static_cast<int64_t>(m)]}) {
        const torch::Tensor flat = tensor.detach().contiguous();
        const float* values = flat.data_ptr<float>();
        out.insert(out.end(), values, values + flat.numel());
      }
    }
  }
  return ensemble;
}

}  // namespace

absl::StatusOr<RegressionFit> FitNetworks(const RegressionProblem& problem,
                                          Rng rng,
                                          const std::stop_token& stop) {
  std::vector<PairSampler> samplers;
  for (int fold = 0; fold < problem.fold_count; ++fold) {
    samplers.emplace_back(problem, fold);
    if (samplers.back().empty()) {
      return absl::FailedPreconditionError("a fold has no rows to compare");
    }
  }
  const std::vector<size_t> sizes = {problem.features->columns, kHidden,
                                     kHidden, 1};
  // Trainings of several threads take turns: the serial build of OpenBLAS gives
  // wrong numbers to threads that multiply matrices at once.
  static auto* const turn = new Mutex;
  const MutexLock lock(turn);
  try {
    // More threads are slower for matrices of this size, and their number
    // would change the order of sums.
    at::set_num_threads(1);
    const Layers layers = MakeLayers(sizes, samplers.size(), &rng);
    CUBICML_RETURN_IF_ERROR(TrainLayers(problem, samplers, layers, &rng, stop));
    return CalibrateNetworks(problem, Export(layers, sizes));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", error.what()));
  }
}

std::unique_ptr<Trainer> NewMlpTrainer() {
  return NewSingleKindTrainer(
      {"mlp-ensemble", FitNetworks, kMaxNetworkRows, ScoreScale::kMetric},
      KernelHeads());
}

}  // namespace cubicml
