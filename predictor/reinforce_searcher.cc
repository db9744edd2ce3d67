// SPDX-License-Identifier: Apache-2.0
//
// The search of arXiv 2409.04585 §3: a policy that proposes configurations is
// trained by REINFORCE (Williams, 1992), the model's opinion being the reward.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "predictor/acquisition.h"
#include "predictor/candidate_pool.h"
#include "predictor/reinforce_policy.h"
#include "predictor/searcher.h"

namespace cubicml {
namespace {

constexpr int kPolicySteps = 200;
constexpr int kSamples = 64;
constexpr int64_t kPolicySampleSteps = 20'000;
constexpr double kPolicyLearningRate = 1.0;
constexpr double kEntropyWeight = 0.02;
// Lower logarithms of a probability would drown what a sample is worth.
constexpr double kHopeless = -7.0;
constexpr double kBaselineMemory = 0.9;
constexpr double kMaxAdvantage = 3.0;
// A policy that has settled finds nothing new; it starts anew.
constexpr double kSettledEntropy = 0.05;

// Moving mean and spread of the rewards.
class Baseline {
 public:
  // Rewards to advantages, in place; learns from them.
  void Apply(std::vector<double>* rewards) {
    double mean = 0.0;
    for (const double reward : *rewards) mean += reward;
    mean /= static_cast<double>(rewards->size());
    double variance = 0.0;
    for (const double reward : *rewards) {
      variance += (reward - mean) * (reward - mean);
    }
    variance /= static_cast<double>(rewards->size());
    const double memory = started_ ? kBaselineMemory : 0.0;
    started_ = true;
    mean_ = memory * mean_ + (1.0 - memory) * mean;
    variance_ = memory * variance_ + (1.0 - memory) * variance;
    const double spread = std::sqrt(variance_) + 1e-9;
    for (double& reward : *rewards) {
      reward =
          std::clamp((reward - mean_) / spread, -kMaxAdvantage, kMaxAdvantage);
    }
  }

 private:
  bool started_ = false;
  double mean_ = 0.0;
  double variance_ = 0.0;
};

// What a sample is rewarded with: an optimistic view of the ranking score, in
// units of the spread of the scores of the first samples. The acquisition
// itself, a logarithm, would let the worst samples outshout the good ones.
class Reward {
 public:
  std::vector<double> Of(const std::vector<PointScore>& scores) {
    if (unit_ == 0.0) SetUnit(scores);
    std::vector<double> rewards;
    rewards.reserve(scores.size());
    for (const PointScore& score : scores) {
      rewards.push_back((score.mean + score.stddev) / unit_ +
                        std::max(score.log_feasible, kHopeless));
    }
    return rewards;
  }

 private:
  void SetUnit(const std::vector<PointScore>& scores) {
    double mean = 0.0;
    for (const PointScore& score : scores) mean += score.mean;
    mean /= static_cast<double>(scores.size());
    double variance = 0.0;
    for (const PointScore& score : scores) {
      variance += (score.mean - mean) * (score.mean - mean);
    }
    unit_ = std::sqrt(variance / static_cast<double>(scores.size())) + 1e-9;
  }

  double unit_ = 0.0;
};

std::vector<Point> Draw(const SearchProblem& problem,
                        const ReinforcePolicy& policy, Rng* rng) {
  std::vector<Point> points;
  points.reserve(kSamples);
  for (int i = 0; i < kSamples; ++i) {
    std::optional<Point> point = problem.space->SampleInOrder(
        problem.context, problem.fixed, kPolicySampleSteps,
        [&](size_t knob, size_t levels, std::vector<size_t>* order) {
          policy.OrderLevels(knob, levels, rng, order);
        },
        problem.stop);
    if (problem.stop.stop_requested()) break;
    if (point.has_value()) points.push_back(*std::move(point));
  }
  return points;
}

class ReinforceSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "reinforce"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    CUBICML_ASSIGN_OR_RETURN(Acquisition acquisition,
                             Acquisition::Create(problem));
    CandidatePool pool(problem, count, Rng(rng()));
    ReinforcePolicy policy(*problem.space);
    Baseline baseline;
    Reward reward;
    for (int step = 0; step < kPolicySteps; ++step) {
      const std::vector<Point> points = Draw(problem, policy, &rng);
      CUBICML_RETURN_IF_ERROR(problem.CheckStop());
      if (points.empty()) break;
      CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> scores,
                               acquisition.Score(points));
      pool.Offer(points, scores);
      std::vector<double> advantages = reward.Of(scores);
      baseline.Apply(&advantages);
      policy.Update(points, advantages, kPolicyLearningRate, kEntropyWeight);
      if (policy.RelativeEntropy() < kSettledEntropy) {
        policy = ReinforcePolicy(*problem.space);
        baseline = Baseline();
      }
    }
    return pool.SelectBatch(std::move(acquisition));
  }
};

}  // namespace

std::unique_ptr<Searcher> NewReinforceSearcher() {
  return std::make_unique<ReinforceSearcher>();
}

}  // namespace cubicml
