// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "predictor/dataset.h"
#include "server/core/resource_name.h"
#include "server/core/time_proto.h"
#include "server/core/trial_state.h"

namespace cubicml {

bool SatisfiesFixed(const Point& point, const FixedKnobs& fixed) {
  for (size_t i = 0; i < fixed.size(); ++i) {
    if (!std::isnan(fixed[i]) && point[i] != fixed[i]) return false;
  }
  return true;
}

StudyState::StudyState(StudyId id,
                       std::shared_ptr<const StudyDefinition> definition,
                       const Clock* clock)
    : id_(id), definition_(std::move(definition)), clock_(clock) {}

int StudyState::GroupLocked(const Context& context) {
  const auto [it, added] =
      groups_.try_emplace(context.key, static_cast<int>(contexts_.size()));
  if (added) {
    contexts_.push_back(
        std::make_unique<ContextState>(it->second, context, *definition_));
  }
  return it->second;
}

void StudyState::Apply(const ParsedTrial& parsed, uint64_t ticket,
                       absl::Duration lease_left) {
  MutexLock lock(&mu_);
  TrialRecord& record = records_[parsed.number.value];
  if (record.ticket > ticket) return;
  const v1::Trial::State before = record.state;
  const v1::Trial::State after = parsed.trial.state();
  record.ticket = ticket;
  record.state = after;
  record.group = GroupLocked(parsed.context);
  ContextState& context = *contexts_[static_cast<size_t>(record.group)];
  record.baseline =
      context.baseline.has_value() && parsed.key == context.baseline_key;
  if (before == v1::Trial::STATE_UNSPECIFIED) {
    context.Confirm(parsed.key);
    if (parsed.trial.suggestion().source() == v1::Trial::REISSUED) {
      const TrialNumber lost = context.RemoveLost(parsed.key);
      if (lost.value != 0) records_[lost.value].reissued = true;
    }
  } else {
    --counts_[before];
  }
  ++counts_[after];
  if (IsHeld(after)) {
    if (IsLost(before)) {
      context.RemoveLost(parsed.number);
      record.reissued = false;
    }
    ApplyHeldLocked(parsed, context.group, lease_left);
  } else {
    if (IsHeld(before)) EraseActiveLocked(parsed.number.value);
    ApplyEndLocked(parsed, before, &context);
  }
}

void StudyState::ApplyHeldLocked(const ParsedTrial& parsed, int group,
                                 absl::Duration lease_left) {
  const v1::Trial& trial = parsed.trial;
  const auto [it, added] = active_.try_emplace(parsed.number.value);
  ActiveTrial& active = it->second;
  active.group = group;
  active.state = trial.state();
  active.point = parsed.point;
  active.client_id = trial.client_id();
  const absl::Time expire_time = TimeFromProto(trial.lease_expire_time());
  // A call that does not touch the lease does not prolong it either.
  if (added || active.expire_time != expire_time) {
    active.expire_time = expire_time;
    active.expire_moment = clock_->Elapsed() + lease_left;
  }
  if (added && !active.client_id.empty()) {
    held_by_[active.client_id].push_back(parsed.number.value);
  }
}

void StudyState::EraseActiveLocked(int64_t number) {
  const auto it = active_.find(number);
  if (it == active_.end()) return;
  const auto held = held_by_.find(it->second.client_id);
  if (held != held_by_.end()) {
    std::erase(held->second, number);
    if (held->second.empty()) held_by_.erase(held);
  }
  active_.erase(it);
}

void StudyState::ApplyEndLocked(const ParsedTrial& parsed,
                                v1::Trial::State before,
                                ContextState* context) {
  const v1::Trial::State after = parsed.trial.state();
  if (IsMeasured(after)) {
    if (!IsMeasured(before)) AddRowLocked(parsed, context);
    return;
  }
  if (!IsLost(after)) {
    context->RemoveLost(parsed.number);
    return;
  }
  const v1::Trial::Source source = parsed.trial.suggestion().source();
  if (IsLost(before) || source == v1::Trial::REPEAT ||
      source == v1::Trial::IMPORTED) {
    return;
  }
  Pick pick;
  pick.point = parsed.point;
  pick.key = parsed.key;
  pick.suggestion = parsed.trial.suggestion();
  pick.suggestion.set_source(v1::Trial::REISSUED);
  pick.attempt = std::max(1, parsed.trial.attempt()) + 1;
  pick.lost = parsed.number;
  context->AddLost(std::move(pick));
}

void StudyState::AddRowLocked(const ParsedTrial& parsed,
                              ContextState* context) {
  MeasuredRow row;
  row.number = parsed.number;
  row.group = context->group;
  row.point = parsed.point;
  row.key = parsed.key;
  row.feasible = parsed.trial.state() == v1::Trial::SUCCEEDED;
  // A measurement that is not kept is one all the same.
  const v1::Trial::Reason reason = parsed.trial.reason();
  row.ran = row.feasible || reason == v1::Trial::METRIC_CONSTRAINT ||
            (reason == v1::Trial::NO_MEASUREMENT &&
             definition_->HasAnyObjective(parsed.trial.metrics()));
  row.metrics = definition_->ParseMetrics(parsed.trial.metrics());
  FeatureMatrix features;
  features.columns = definition_->featurizer().columns();
  definition_->featurizer().Append(row.point, context->context, &features);
  row.features = std::move(features.values);
  context->AddMeasurement(row, rows_.size());
  rows_.Append(std::move(row));
  if (main_group_ < 0 ||
      context->finished() >
          contexts_[static_cast<size_t>(main_group_)]->finished()) {
    main_group_ = context->group;
  }
}

void StudyState::ApplyUnreadable(v1::Trial::State state) {
  MutexLock lock(&mu_);
  ++counts_[state];
}

BaselineMetrics StudyState::FindBaseline(TrialNumber number) const {
  MutexLock lock(&mu_);
  const auto record = records_.find(number.value);
  if (record == records_.end() || record->second.group < 0 ||
      record->second.baseline) {
    return {};
  }
  return contexts_[static_cast<size_t>(record->second.group)]
      ->baseline_tally()
      .Means(*definition_);
}

std::vector<MetricBound> StudyState::FindBounds(const Context& context) const {
  MutexLock lock(&mu_);
  const auto group = groups_.find(context.key);
  if (group == groups_.end()) return definition_->Bounds({});
  return definition_->Bounds(
      contexts_[static_cast<size_t>(group->second)]->baseline_tally().Means(
          *definition_));
}

std::vector<MetricBound> StudyState::ListBoundsLocked() const {
  std::vector<MetricBound> all;
  if (definition_->HasRelativeBounds()) {
    for (const auto& context : contexts_) {
      const BaselineMetrics means =
          context->baseline_tally().Means(*definition_);
      if (means.empty()) continue;
      const std::vector<MetricBound> bounds = definition_->Bounds(means);
      all.insert(all.end(), bounds.begin(), bounds.end());
    }
  }
  return all.empty() ? definition_->Bounds({}) : all;
}

std::vector<StudyState::HeldTrial> StudyState::ListHeld(
    const std::string& client_id, int group) const {
  std::vector<HeldTrial> held;
  if (client_id.empty()) return held;
  MutexLock lock(&mu_);
  const auto numbers = held_by_.find(client_id);
  if (numbers == held_by_.end()) return held;
  for (int64_t number : numbers->second) {
    const auto active = active_.find(number);
    if (active == active_.end() || active->second.group != group ||
        active->second.state != v1::Trial::ACTIVE) {
      continue;
    }
    held.push_back({TrialNumber{number}, active->second.point});
  }
  std::sort(held.begin(), held.end(),
            [](const HeldTrial& a, const HeldTrial& b) {
              return a.number < b.number;
            });
  return held;
}

std::vector<StudyState::LapsedLease> StudyState::ListLapsedLeases() const {
  const absl::Duration now = clock_->Elapsed();
  std::vector<LapsedLease> lapsed;
  MutexLock lock(&mu_);
  for (const auto& [number, active] : active_) {
    if (active.expire_moment <= now) {
      lapsed.push_back({TrialNumber{number}, active.expire_time});
    }
  }
  return lapsed;
}

bool StudyState::ClaimExpired(TrialNumber number) {
  MutexLock lock(&mu_);
  const auto it = records_.find(number.value);
  if (it == records_.end() || it->second.state != v1::Trial::EXPIRED ||
      it->second.reissued) {
    return false;
  }
  // While claimed nobody else gets its configuration.
  it->second.reissued = true;
  return true;
}

void StudyState::ReturnExpired(TrialNumber number) {
  MutexLock lock(&mu_);
  const auto it = records_.find(number.value);
  if (it != records_.end()) it->second.reissued = false;
}

v1::StudyProgress StudyState::Progress() const {
  v1::StudyProgress progress;
  MutexLock lock(&mu_);
  for (const auto& [state, count] : counts_) {
    progress.set_trials(progress.trials() + count);
    if (IsHeld(state)) {
      progress.set_active_trials(progress.active_trials() + count);
    }
    if (state == v1::Trial::SUCCEEDED) progress.set_succeeded_trials(count);
    if (state == v1::Trial::INFEASIBLE) progress.set_infeasible_trials(count);
  }
  if (model_ != nullptr) *progress.mutable_surrogate() = model_->quality;
  if (main_group_ < 0) return progress;
  const ContextState& main = *contexts_[static_cast<size_t>(main_group_)];
  const std::optional<double> baseline = main.baseline_tally().objective();
  if (baseline.has_value()) progress.set_baseline_objective(*baseline);
  const std::optional<ContextState::Best> found = main.best();
  if (!found.has_value()) return progress;
  const double best = found->objective;
  progress.set_best_objective(best);
  progress.set_best_trial(FormatTrialName(definition_->name(), found->number));
  // A ratio says something only between positive quantities.
  if (baseline.has_value() && *baseline > 0.0 && best > 0.0) {
    progress.set_speedup(definition_->maximize() ? best / *baseline
                                                 : *baseline / best);
  }
  return progress;
}

int64_t StudyState::held_trials() const {
  MutexLock lock(&mu_);
  return static_cast<int64_t>(active_.size());
}

RowLog::Snapshot StudyState::Rows() const {
  MutexLock lock(&mu_);
  return rows_.Share();
}

std::vector<Context> StudyState::Contexts() const {
  std::vector<Context> contexts;
  MutexLock lock(&mu_);
  contexts.reserve(contexts_.size());
  for (const auto& context : contexts_) contexts.push_back(context->context);
  return contexts;
}

}  // namespace cubicml
