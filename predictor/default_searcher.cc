// SPDX-License-Identifier: Apache-2.0
//
// What the algorithm DEFAULT searches with once there is a model.

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "predictor/acquisition.h"
#include "predictor/candidate_pool.h"
#include "predictor/searcher.h"
#include "predictor/untaken_points.h"

namespace cubicml {
namespace {

// Scores everything where that takes well under a second. Elsewhere REINFORCE,
// which sees the space whole, and local search, which polishes, each propose a
// batch, and the batch is chosen from both.
class DefaultSearcher final : public Searcher {
 public:
  absl::string_view name() const override { return "default"; }

  absl::StatusOr<std::vector<Candidate>> Search(const SearchProblem& problem,
                                                size_t count,
                                                Rng rng) const override {
    if (problem.space->ValidPoints(problem.context, problem.fixed,
                                   kMaxListedPoints, problem.stop) != nullptr) {
      return exhaustive_->Search(problem, count, rng);
    }
    CUBICML_RETURN_IF_ERROR(problem.CheckStop());
    CUBICML_ASSIGN_OR_RETURN(Acquisition acquisition,
                             Acquisition::Create(problem));
    CandidatePool pool(problem, count, Rng(rng()));
    for (const Searcher* searcher : {reinforce_.get(), local_.get()}) {
      CUBICML_ASSIGN_OR_RETURN(std::vector<Candidate> candidates,
                               searcher->Search(problem, count, Rng(rng())));
      std::vector<Point> points;
      for (Candidate& candidate : candidates) {
        points.push_back(std::move(candidate.point));
      }
      CUBICML_ASSIGN_OR_RETURN(const std::vector<PointScore> scores,
                               acquisition.Score(points));
      pool.Offer(points, scores);
    }
    return pool.SelectBatch(std::move(acquisition));
  }

 private:
  const std::unique_ptr<Searcher> exhaustive_ = NewExhaustiveSearcher();
  const std::unique_ptr<Searcher> reinforce_ = NewReinforceSearcher();
  const std::unique_ptr<Searcher> local_ = NewLocalSearcher();
};

}  // namespace

std::unique_ptr<Searcher> NewDefaultSearcher() {
  return std::make_unique<DefaultSearcher>();
}

}  // namespace cubicml
