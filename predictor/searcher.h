// SPDX-License-Identifier: Apache-2.0
//
// Finds configurations worth running next. Pure: the result is a function of
// the problem and the generator.

#ifndef CUBICML_PREDICTOR_SEARCHER_H_
#define CUBICML_PREDICTOR_SEARCHER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/rng.h"
#include "predictor/featurizer.h"
#include "predictor/metric_bound.h"
#include "predictor/predictor.h"
#include "predictor/search_space.h"

namespace cubicml {

// A trial of this context that has ended, for the acquisition.
struct Observation {
  Point point;
  bool feasible = false;
  // The first objective, NaN when not measured.
  double objective = 0.0;
};

// What to search. The references outlive the call.
struct SearchProblem {
  std::shared_ptr<const SearchSpace> space;
  const Featurizer* featurizer = nullptr;
  const Predictor* predictor = nullptr;  // null: only searchers without a model
  Context context;
  FixedKnobs fixed;
  bool maximize = true;
  // What a configuration must keep, beside running at all.
  std::vector<MetricBound> bounds;
  std::vector<Observation> observations;  // of this context
  // Keys of what must not be suggested: measured, running, or handed out.
  std::unordered_set<std::string> taken;
  // Running trials of this context, which count as measured with what the
  // model expects of them.
  std::vector<Point> pending;
  std::stop_token stop;

  // CANCELLED once stop was requested.
  absl::Status CheckStop() const {
    if (!stop.stop_requested()) return absl::OkStatus();
    return absl::CancelledError("the search was stopped");
  }
};

struct Candidate {
  Point point;
  double acquisition = 0.0;  // 0 without a model
};

// Immutable and thread-safe.
class Searcher {
 public:
  virtual ~Searcher() = default;

  virtual absl::string_view name() const = 0;

  // At most `count` different valid points that are not taken, the best first.
  // Fewer, or none, when there are no more.
  // FAILED_PRECONDITION  it needs a predictor, or the space is too large for it
  // CANCELLED            stop was requested
  virtual absl::StatusOr<std::vector<Candidate>> Search(
      const SearchProblem& problem, size_t count, Rng rng) const = 0;
};

// Uniform over the valid points that are left. No model.
std::unique_ptr<Searcher> NewRandomSearcher();
// Points far from each other and from those observed or pending, so that few
// trials say much about the space. No model.
std::unique_ptr<Searcher> NewSpaceFillingSearcher();
// Scores every valid point; FAILED_PRECONDITION above 10^7 of them.
std::unique_ptr<Searcher> NewExhaustiveSearcher();
// arXiv 2409.04585 §3: factorised categorical policy trained by REINFORCE
// against the model.
std::unique_ptr<Searcher> NewReinforceSearcher();
// Evolution and local search around the best, for spaces too large to score
// whole.
std::unique_ptr<Searcher> NewLocalSearcher();
// What DEFAULT means: exhaustive where the space is small enough to score
// within a second, else REINFORCE and local search together.
std::unique_ptr<Searcher> NewDefaultSearcher();

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SEARCHER_H_
