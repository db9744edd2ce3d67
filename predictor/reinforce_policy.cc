// SPDX-License-Identifier: Apache-2.0

#include "predictor/reinforce_policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace cubicml {
namespace {

// More logits than this for one knob learn too slowly from a few thousand
// samples.
constexpr size_t kMaxChoices = 32;

size_t LevelOf(const Knob& knob, double value) {
  const auto found =
      std::lower_bound(knob.levels.begin(), knob.levels.end(), value);
  const size_t index = static_cast<size_t>(found - knob.levels.begin());
  return std::min(index, knob.levels.size() - 1);
}

double Entropy(std::span<const double> probabilities) {
  double entropy = 0.0;
  for (const double p : probabilities) {
    if (p > 0.0) entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

ReinforcePolicy::ReinforcePolicy(const SearchSpace& space) : space_(&space) {
  for (const Knob& knob : space.knobs()) {
    KnobPolicy policy;
    policy.levels = knob.levels.size();
    policy.levels_per_choice = (policy.levels + kMaxChoices - 1) / kMaxChoices;
    const size_t choices = (policy.levels + policy.levels_per_choice - 1) /
                           policy.levels_per_choice;
    policy.logits.assign(choices, 0.0);
    Normalize(&policy);
    knobs_.push_back(std::move(policy));
  }
}

void ReinforcePolicy::Normalize(KnobPolicy* policy) {
  const double largest =
      *std::max_element(policy->logits.begin(), policy->logits.end());
  double sum = 0.0;
  policy->probabilities.resize(policy->logits.size());
  for (size_t i = 0; i < policy->logits.size(); ++i) {
    policy->probabilities[i] = std::exp(policy->logits[i] - largest);
    sum += policy->probabilities[i];
  }
  for (double& p : policy->probabilities) p /= sum;
}

// Gumbel's trick: exponential variates divided by the probabilities, in
// ascending order, are a draw without replacement.
void ReinforcePolicy::OrderLevels(size_t knob, size_t levels, Rng* rng,
                                  std::vector<size_t>* order) const {
  const KnobPolicy& policy = knobs_[knob];
  order->clear();
  if (levels != policy.levels) {
    // A table constraint gives the knob other values than its levels.
    for (size_t i = 0; i < levels; ++i) order->push_back(i);
    rng->Shuffle(order);
    return;
  }
  const size_t choices = policy.probabilities.size();
  std::vector<std::pair<double, size_t>> arrivals(choices);
  for (size_t i = 0; i < choices; ++i) {
    const double wait = -std::log1p(-rng->Uniform());
    arrivals[i] = {wait / std::max(policy.probabilities[i], 1e-12), i};
  }
  std::sort(arrivals.begin(), arrivals.end());
  for (const auto& [wait, choice] : arrivals) {
    const size_t first = choice * policy.levels_per_choice;
    const size_t width =
        std::min(policy.levels_per_choice, policy.levels - first);
    order->push_back(first + (width > 1 ? rng->Below(width) : 0));
  }
}

void ReinforcePolicy::Update(std::span<const Point> points,
                             std::span<const double> advantages,
                             double learning_rate, double entropy_weight) {
  if (points.empty()) return;
  const double share = 1.0 / static_cast<double>(points.size());
  for (size_t k = 0; k < knobs_.size(); ++k) {
    KnobPolicy& policy = knobs_[k];
    if (policy.logits.size() < 2) continue;
    const Knob& knob = space_->knobs()[k];
    std::vector<double> gradient(policy.logits.size(), 0.0);
    double total = 0.0;
    for (size_t i = 0; i < points.size(); ++i) {
      const double value = points[i][k];
      if (std::isnan(value)) continue;
      gradient[LevelOf(knob, value) / policy.levels_per_choice] +=
          share * advantages[i];
      total += share * advantages[i];
    }
    const double entropy = Entropy(policy.probabilities);
    for (size_t c = 0; c < gradient.size(); ++c) {
      const double p = policy.probabilities[c];
      gradient[c] -= total * p;
      // d entropy / d logit = -p (log p + entropy).
      if (p > 0.0) gradient[c] -= entropy_weight * p * (std::log(p) + entropy);
      policy.logits[c] += learning_rate * gradient[c];
    }
    Normalize(&policy);
  }
}

double ReinforcePolicy::RelativeEntropy() const {
  double entropy = 0.0;
  double uniform = 0.0;
  for (const KnobPolicy& policy : knobs_) {
    entropy += Entropy(policy.probabilities);
    uniform += std::log(static_cast<double>(policy.probabilities.size()));
  }
  return uniform > 0.0 ? entropy / uniform : 0.0;
}

}  // namespace cubicml
