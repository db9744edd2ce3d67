// SPDX-License-Identifier: Apache-2.0
//
// The best candidates that a search has met, and the batch that is taken from
// them.

#ifndef CUBICML_PREDICTOR_CANDIDATE_POOL_H_
#define CUBICML_PREDICTOR_CANDIDATE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "predictor/acquisition.h"
#include "predictor/searcher.h"

namespace cubicml {

// Keeps the best few hundred different candidates that are not taken. Equal
// acquisitions are ordered by chance, so that a model that says nothing does
// not always lead to the same corner of the space. Not thread-safe. The problem
// must outlive it.
class CandidatePool {
 public:
  // For a batch of `count`.
  CandidatePool(const SearchProblem& problem, size_t count, Rng rng);

  // REQUIRES: as many scores as points.
  void Offer(std::span<const Point> points, std::span<const PointScore> scores);

  // The batch, the best first: greedily, each one as if those before it were
  // running already. Empties the pool. CANCELLED when the search is to stop.
  absl::StatusOr<std::vector<Candidate>> SelectBatch(Acquisition acquisition);

 private:
  struct Entry {
    PointScore score;
    uint64_t tie;
    Point point;
    std::string key;
  };
  static bool Better(const Entry& a, const Entry& b);
  void OfferOne(const Point& point, const PointScore& score);

  const SearchProblem& problem_;
  const size_t count_;
  const size_t capacity_;
  Rng rng_;
  std::vector<Entry> heap_;  // the worst in front
  std::unordered_set<std::string> keys_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_CANDIDATE_POOL_H_
