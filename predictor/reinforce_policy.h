// SPDX-License-Identifier: Apache-2.0
//
// The policy that REINFORCE trains: which value each knob should have.

#ifndef CUBICML_PREDICTOR_REINFORCE_POLICY_H_
#define CUBICML_PREDICTOR_REINFORCE_POLICY_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/rng.h"
#include "predictor/search_space.h"

namespace cubicml {

// A factorised categorical distribution: one vector of logits for each knob,
// one logit for each of its levels (for each range of neighbouring levels where
// a knob has very many). Not thread-safe. The space must outlive it.
class ReinforcePolicy {
 public:
  explicit ReinforcePolicy(const SearchSpace& space);

  // Levels of a knob in the order in which they should be tried: the first is
  // a draw from the policy, the next a draw from what is left, and so on. So
  // the first that the constraints allow is a draw from the masked policy.
  // `levels` is how many the knob has there; of a range of levels one is drawn.
  void OrderLevels(size_t knob, size_t levels, Rng* rng,
                   std::vector<size_t>* order) const;

  // One step of gradient ascent on the advantage of the sampled points plus
  // `entropy_weight` times the entropy. Knobs that are not active in a point
  // learn nothing from it.
  void Update(std::span<const Point> points, std::span<const double> advantages,
              double learning_rate, double entropy_weight);

  // Of the distribution, over that of the uniform one; 1 at first, 0 when it
  // always answers the same.
  double RelativeEntropy() const;

 private:
  struct KnobPolicy {
    size_t levels = 0;
    size_t levels_per_choice = 1;
    std::vector<double> logits;
    std::vector<double> probabilities;
  };
  static void Normalize(KnobPolicy* policy);

  const SearchSpace* space_;
  std::vector<KnobPolicy> knobs_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_REINFORCE_POLICY_H_
