// SPDX-License-Identifier: Apache-2.0

#include "predictor/surrogate_trainer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "predictor/kernel_fit.h"
#include "predictor/kernel_regressor.h"
#include "predictor/kernel_trainer.h"
#include "predictor/linear_regressor.h"
#include "predictor/quality.h"
#include "predictor/surrogate_model.h"
#include "predictor/torch_trainer.h"
#include "predictor/training_set.h"

namespace cubicml {
namespace {

// On measured tables networks are no better than a Gaussian process before.
constexpr size_t kMinNetworkRows = 120;
// Held-out tau of a network must be better by this much: it is noisy, and the
// other kinds know their own uncertainty better.
constexpr double kNetworkMargin = 0.02;

struct Contender {
  absl::string_view kind;
  ScoreFit score;
};

// Tau over the rows of the training set that `shared` marks.
double HeldOutTau(const ScoreFit& score, const std::vector<bool>& shared) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<int> groups;
  for (size_t i = 0; i < score.rows.index.size(); ++i) {
    if (!shared[score.rows.index[i]]) continue;
    predicted.push_back(score.fit.held_out[i].mean);
    measured.push_back(score.rows.targets[i]);
    groups.push_back(score.rows.groups[i]);
  }
  return KendallTau(predicted, measured, groups).value_or(0.0);
}

class SurrogateTrainer : public Trainer {
 public:
  absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset& dataset, Rng rng, std::stop_token stop) const override {
    CUBICML_ASSIGN_OR_RETURN(const TrainingSet set,
                             MakeTrainingSet(dataset, kMaxNetworkRows, &rng));
    CUBICML_ASSIGN_OR_RETURN(Contender best, Choose(set, &rng, stop));
    return AssembleSurrogate(set, best.kind, std::move(best.score),
                             KernelHeads(), &rng, stop);
  }

  absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view checkpoint) const override {
    return LoadSurrogate(checkpoint);
  }

 private:
  static absl::StatusOr<Contender> Choose(const TrainingSet& set, Rng* rng,
                                          const std::stop_token& stop) {
    constexpr absl::string_view kKinds[] = {"gaussian-process", "linear"};
    ScoreFit score =
        SelectScore(set, ScoreScale::kShareOfBest, kMaxKernelRows, rng);
    CUBICML_ASSIGN_OR_RETURN(
        LikeliestFit likeliest,
        FitLikeliest(score.rows.problem(), {FitKernel, FitLinear}, stop));
    score.fit = std::move(likeliest.fit);
    Contender best{kKinds[likeliest.kind], std::move(score)};

    Contender network{"mlp-ensemble", {}};
    network.score = SelectScore(set, ScoreScale::kMetric, kMaxNetworkRows, rng);
    if (network.score.rows.targets.size() < kMinNetworkRows) return best;
    absl::StatusOr<RegressionFit> fit =
        FitNetworks(network.score.rows.problem(), Rng((*rng)()), stop);
    if (absl::IsCancelled(fit.status())) return fit.status();
    if (!fit.ok()) {
      // There is a model already.
      CUBICML_LOG(WARNING) << "networks could not be trained"
                           << Field("why", fit.status().ToString());
      return best;
    }
    network.score.fit = *std::move(fit);
    std::vector<bool> shared(set.rows.size(), false);
    for (const size_t i : best.score.rows.index) shared[i] = true;
    if (HeldOutTau(network.score, shared) >
        HeldOutTau(best.score, shared) + kNetworkMargin) {
      return network;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Trainer> NewSurrogateTrainer() {
  return std::make_unique<SurrogateTrainer>();
}

}  // namespace cubicml
