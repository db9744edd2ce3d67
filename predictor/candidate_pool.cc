// SPDX-License-Identifier: Apache-2.0

#include "predictor/candidate_pool.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/status_macros.h"

namespace cubicml {
namespace {

// The neighbours of the best point are worth nothing once it is chosen; so
// many more than a batch leave something else to choose from.
constexpr size_t kMinCapacity = 256;
constexpr size_t kCapacityPerCandidate = 16;
// Of the spare ones: a batch for which these are few is spread widely anyway.
constexpr size_t kMaxSpareCapacity = 8192;

size_t CapacityFor(size_t count) {
  return std::max({kMinCapacity,
                   std::min(count * kCapacityPerCandidate, kMaxSpareCapacity),
                   2 * count});
}

}  // namespace

CandidatePool::CandidatePool(const SearchProblem& problem, size_t count,
                             Rng rng)
    : problem_(problem),
      count_(count),
      capacity_(CapacityFor(count)),
      rng_(rng) {}

bool CandidatePool::Better(const Entry& a, const Entry& b) {
  return std::tie(a.score.acquisition, a.tie) >
         std::tie(b.score.acquisition, b.tie);
}

void CandidatePool::Offer(std::span<const Point> points,
                          std::span<const PointScore> scores) {
  for (size_t i = 0; i < points.size(); ++i) OfferOne(points[i], scores[i]);
}

void CandidatePool::OfferOne(const Point& point, const PointScore& score) {
  if (std::isnan(score.acquisition)) return;
  Entry entry{score, rng_(), {}, {}};
  // Most candidates end here, before anything is copied.
  const bool full = heap_.size() >= capacity_;
  if (full && !Better(entry, heap_.front())) return;
  entry.key = problem_.space->PointKey(point);
  if (problem_.taken.contains(entry.key)) return;
  if (!keys_.insert(entry.key).second) return;
  entry.point = point;
  if (full) {
    keys_.erase(heap_.front().key);
    std::pop_heap(heap_.begin(), heap_.end(), Better);
    heap_.back() = std::move(entry);
  } else {
    heap_.push_back(std::move(entry));
  }
  std::push_heap(heap_.begin(), heap_.end(), Better);
}

// A candidate's worth only falls with what is chosen before it. So whoever is
// first by an old score and stays first by a new one is the best of all, and
// most others never need a new score. The exception is the first that is
// believed to work while nothing has: all are scored anew.
absl::StatusOr<std::vector<Candidate>> CandidatePool::SelectBatch(
    Acquisition acquisition) {
  const auto worse = [](const Entry& a, const Entry& b) {
    return Better(b, a);
  };
  std::vector<Entry> entries = std::move(heap_);
  heap_.clear();
  keys_.clear();
  const auto rescore = [&acquisition](Entry* entry) {
    acquisition.Rescore(acquisition.distance().Locate(entry->point),
                        &entry->score);
  };
  std::make_heap(entries.begin(), entries.end(), worse);
  std::vector<Candidate> batch;
  while (batch.size() < count_ && !entries.empty()) {
    CUBICML_RETURN_IF_ERROR(problem_.CheckStop());
    std::pop_heap(entries.begin(), entries.end(), worse);
    if (acquisition.IsStale(entries.back().score)) {
      rescore(&entries.back());
      std::push_heap(entries.begin(), entries.end(), worse);
      continue;
    }
    Entry chosen = std::move(entries.back());
    entries.pop_back();
    const bool had_best = acquisition.has_best();
    acquisition.Believe(chosen.point, chosen.score);
    if (acquisition.has_best() != had_best) {
      for (Entry& entry : entries) rescore(&entry);
      std::make_heap(entries.begin(), entries.end(), worse);
    }
    batch.push_back({std::move(chosen.point), chosen.score.acquisition});
  }
  return batch;
}

}  // namespace cubicml
