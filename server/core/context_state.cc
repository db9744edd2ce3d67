// SPDX-License-Identifier: Apache-2.0

#include "server/core/context_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/statusor.h"
#include "base/stable_hash.h"

namespace cubicml {
namespace {

std::optional<Point> FindBaseline(const StudyDefinition& definition,
                                  const Context& context) {
  absl::StatusOr<Point> point =
      definition.space()->Baseline(context, definition.space()->Free());
  if (!point.ok()) return std::nullopt;
  return *std::move(point);
}

}  // namespace

void BaselineTally::Add(const std::vector<double>& metrics) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (std::isnan(metrics[i])) continue;
    sums_[i] += metrics[i];
    ++counts_[i];
  }
}

BaselineMetrics BaselineTally::Means(const StudyDefinition& definition) const {
  BaselineMetrics means;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    means[definition.metrics()[i].name] =
        sums_[i] / static_cast<double>(counts_[i]);
  }
  return means;
}

std::optional<double> BaselineTally::objective() const {
  if (counts_.front() == 0) return std::nullopt;
  return sums_.front() / static_cast<double>(counts_.front());
}

ContextState::ContextState(int group_in, Context context_in,
                           const StudyDefinition& definition)
    : group(group_in),
      context(std::move(context_in)),
      hash(StableHash(context.key)),
      baseline(FindBaseline(definition, context)),
      baseline_key(
          baseline.has_value() ? definition.space()->PointKey(*baseline) : ""),
      maximize_(definition.maximize()),
      baseline_tally_(definition.metrics().size()) {}

bool ContextState::IsTaken(const std::string& key) const {
  return measured_.contains(key) || unmeasured_.contains(key);
}

size_t ContextState::explored() const {
  return taken() - (baseline.has_value() && IsTaken(baseline_key) ? 1 : 0);
}

void ContextState::Reserve(const Pick& pick) {
  reserved_[pick.key] = pick.point;
  if (!measured_.contains(pick.key)) unmeasured_.insert(pick.key);
}

void ContextState::Release(const Pick& pick) {
  reserved_.erase(pick.key);
  unmeasured_.erase(pick.key);
  exhausted_at.reset();
}

void ContextState::Confirm(const std::string& key) {
  reserved_.erase(key);
  if (!measured_.contains(key)) unmeasured_.insert(key);
}

void ContextState::AddLost(Pick pick) {
  if (pick.attempt > kMaxAttempts || measured_.contains(pick.key)) return;
  lost_.push_back(std::move(pick));
}

bool ContextState::RemoveLost(TrialNumber number) {
  return std::erase_if(
             lost_, [&](const Pick& pick) { return pick.lost == number; }) > 0;
}

TrialNumber ContextState::RemoveLost(const std::string& key) {
  const auto it =
      std::find_if(lost_.begin(), lost_.end(),
                   [&](const Pick& pick) { return pick.key == key; });
  if (it == lost_.end()) return TrialNumber{};
  const TrialNumber number = it->lost;
  lost_.erase(it);
  return number;
}

void ContextState::AddMeasurement(const MeasuredRow& measured, size_t row) {
  ++finished_;
  unmeasured_.erase(measured.key);
  // A measurement, even a late one, ends the wish to try it again.
  std::erase_if(lost_,
                [&](const Pick& pick) { return pick.key == measured.key; });
  if (measured.feasible && baseline.has_value() &&
      measured.key == baseline_key) {
    baseline_tally_.Add(measured.metrics);
  }
  Tally& tally = measured_[measured.key];
  if (const auto rank = RankOf(tally, maximize_)) ranking_.erase(*rank);
  const double objective = measured.metrics.front();
  if (!measured.feasible) {
    ++tally.failed;
  } else if (!std::isnan(objective)) {
    tally.sum += objective;
    ++tally.count;
    if (tally.count == 1 || measured.number < tally.first) {
      tally.first = measured.number;
      tally.row = row;
    }
  }
  if (const auto rank = RankOf(tally, maximize_)) ranking_.insert(*rank);
}

std::optional<ContextState::Rank> ContextState::RankOf(const Tally& tally,
                                                       bool maximize) {
  if (tally.count <= tally.failed) return std::nullopt;
  const double mean = tally.sum / static_cast<double>(tally.count);
  return Rank{maximize ? -mean : mean, tally.first, tally.row};
}

std::optional<ContextState::Best> ContextState::best() const {
  if (ranking_.empty()) return std::nullopt;
  const Rank& first = *ranking_.begin();
  return Best{first.number, maximize_ ? -first.cost : first.cost, first.row};
}

}  // namespace cubicml
