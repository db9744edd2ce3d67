// SPDX-License-Identifier: Apache-2.0

#include "predictor/candidate_pool.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace cubicml {
namespace {

// The neighbours of the best point are worth nothing once it is chosen; so
// many more than a batch leave something else to choose from.
constexpr size_t kMinCapacity = 256;
constexpr size_t kCapacityPerCandidate = 16;

}  // namespace

CandidatePool::CandidatePool(const SearchProblem& problem, size_t count,
                             Rng rng)
    : problem_(problem),
      count_(count),
      capacity_(std::max(kMinCapacity, count * kCapacityPerCandidate)),
      rng_(rng) {}

bool CandidatePool::Better(const Entry& a, const Entry& b) {
  return std::tie(a.acquisition, a.tie) > std::tie(b.acquisition, b.tie);
}

void CandidatePool::Offer(std::span<const Point> points,
                          std::span<const PointScore> scores) {
  for (size_t i = 0; i < points.size(); ++i) OfferOne(points[i], scores[i]);
}

void CandidatePool::OfferOne(const Point& point, const PointScore& score) {
  if (std::isnan(score.acquisition)) return;
  Entry entry{score.acquisition, rng_(), {}, score, {}};
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

std::vector<Candidate> CandidatePool::SelectBatch(Acquisition acquisition) {
  std::vector<Entry> entries = std::move(heap_);
  heap_.clear();
  keys_.clear();
  std::sort(entries.begin(), entries.end(), Better);
  std::vector<KnobDistance::Position> positions;
  for (const Entry& entry : entries) {
    positions.push_back(acquisition.distance().Locate(entry.point));
  }
  std::vector<Candidate> batch;
  while (batch.size() < count_ && !entries.empty()) {
    const size_t best = static_cast<size_t>(
        std::min_element(entries.begin(), entries.end(), Better) -
        entries.begin());
    Entry chosen = std::move(entries[best]);
    entries[best] = std::move(entries.back());
    entries.pop_back();
    positions[best] = std::move(positions.back());
    positions.pop_back();
    acquisition.Believe(chosen.point, chosen.score);
    for (size_t i = 0; i < entries.size(); ++i) {
      acquisition.Rescore(positions[i], &entries[i].score);
      entries[i].acquisition = entries[i].score.acquisition;
    }
    batch.push_back({std::move(chosen.point), chosen.acquisition});
  }
  return batch;
}

}  // namespace cubicml
