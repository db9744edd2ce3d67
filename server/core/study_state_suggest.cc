// SPDX-License-Identifier: Apache-2.0
//
// The part of StudyState that says what to hand out next.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "server/core/study_state.h"
#include "server/core/trial_state.h"

namespace cubicml {
namespace {

// A model that has seen this many measurements of other contexts knows more
// than an initial design would find out.
constexpr int64_t kMinForeignRows = 20;
// Fewer measurements than these teach no model anything.
constexpr size_t kMinTrainingRows = 3;
// Each measurement is worth a training while there are few; one more of many
// changes a model by less than that costs.
constexpr double kNewRowsShare = 0.01;
// A search by the model finds this many at once: scoring costs more than
// choosing, and the next calls find them ready.
constexpr size_t kModelBatch = 64;
// The most, for those who ask faster than searches end. Other kinds compare the
// candidates with each other, which takes time that grows with their square.
constexpr size_t kMaxModelBatch = 4096;
constexpr size_t kMaxBatch = 512;
constexpr size_t kFirstWaitedBatch = 16;
// With so few left, or this share of a batch, more are computed ahead.
constexpr size_t kLowReady = 16;
constexpr size_t kLowReadyShare = 4;
// Of what is taken in a context: copying that for a search then costs each
// suggestion the same however long the history is.
constexpr size_t kBatchShare = 64;
// Contexts whose suggestions are computed ahead.
constexpr size_t kMaxAheadContexts = 8;

// What a seed is for.
enum class SeedUse : uint64_t {
  kDesign = 1,
  kSpaceFilling = 2,
  kRandom = 3,
  kModel = 4,
  kFallback = 5,
};

uint64_t DeriveSeed(const StudyDefinition& definition,
                    const ContextState& context, SeedUse use,
                    int64_t model_version) {
  // The whole design is drawn at once, the others go on from what is taken.
  const uint64_t position = use == SeedUse::kDesign ? 0 : context.taken();
  Rng rng = Rng::Derive(definition.seed(),
                        {static_cast<uint64_t>(use), context.hash,
                         static_cast<uint64_t>(model_version), position});
  return rng();
}

size_t LowReady(const ContextState& context) {
  return std::max(kLowReady, context.last_batch / kLowReadyShare);
}

}  // namespace

absl::StatusOr<int> StudyState::AddGroupLocked(const Context& context) {
  if (!groups_.contains(context.key) && contexts_.size() >= kMaxContexts) {
    return absl::ResourceExhaustedError(
        absl::StrCat(definition_->name(), " already has ", kMaxContexts,
                     " different contexts"));
  }
  return GroupLocked(context);
}

absl::StatusOr<StudyState::ContextBaseline> StudyState::AddContext(
    const Context& context) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const int group, AddGroupLocked(context));
  const ContextState& added = *contexts_[static_cast<size_t>(group)];
  return ContextBaseline{added.baseline_key, added.baseline_tally()};
}

absl::StatusOr<int> StudyState::FindOrAddContext(const Context& context) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const int group, AddGroupLocked(context));
  contexts_[static_cast<size_t>(group)]->last_asked = ++calls_;
  return group;
}

std::optional<size_t> StudyState::BestRow(int group) const {
  MutexLock lock(&mu_);
  const ContextState& context = *contexts_[static_cast<size_t>(group)];
  const std::optional<ContextState::Best> best = context.best();
  if (!best.has_value()) return std::nullopt;
  return best->row;
}

std::optional<Pick> StudyState::Baseline(int group) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(group)];
  if (!context.baseline.has_value()) return std::nullopt;
  Pick pick;
  pick.point = *context.baseline;
  pick.key = context.baseline_key;
  const bool again = context.IsTaken(pick.key);
  pick.suggestion.set_source(again ? v1::Trial::REPEAT : v1::Trial::BASELINE);
  if (!again) context.Reserve(pick);
  return pick;
}

bool StudyState::TakeLostLocked(const SuggestionNeed& need,
                                ContextState* context,
                                std::vector<Pick>* picks) {
  std::deque<Pick>& lost = context->lost();
  for (auto it = lost.begin(); it != lost.end(); ++it) {
    TrialRecord& record = records_[it->lost.value];
    // Its holder came back, or the caller wants something else.
    if (record.reissued || !SatisfiesFixed(it->point, need.fixed)) continue;
    record.reissued = true;
    picks->push_back(std::move(*it));
    lost.erase(it);
    context->Reserve(picks->back());
    return true;
  }
  return false;
}

bool StudyState::TakeBaselineLocked(const SuggestionNeed& need,
                                    ContextState* context,
                                    std::vector<Pick>* picks) {
  if (!context->baseline.has_value() ||
      context->IsTaken(context->baseline_key) ||
      !SatisfiesFixed(*context->baseline, need.fixed)) {
    return false;
  }
  Pick pick;
  pick.point = *context->baseline;
  pick.key = context->baseline_key;
  pick.suggestion.set_source(v1::Trial::BASELINE);
  context->Reserve(pick);
  picks->push_back(std::move(pick));
  return true;
}

bool StudyState::TakeReadyLocked(const SuggestionNeed& need,
                                 ContextState* context,
                                 std::vector<Pick>* picks) {
  if (need.any_fixed) return false;
  ContextState::ReadyList& ready = context->ready;
  const int64_t version =
      model_ == nullptr ? 0 : model_->quality.model_version();
  // A design does not depend on the model, the rest is stale without it.
  if (ready.kind != ChooseKindLocked(need, *context) ||
      (ready.kind != SearchKind::kDesign && ready.model_version != version)) {
    ready.picks.clear();
    return false;
  }
  while (!ready.picks.empty()) {
    Pick pick = std::move(ready.picks.front());
    ready.picks.pop_front();
    if (context->IsTaken(pick.key)) continue;
    context->Reserve(pick);
    picks->push_back(std::move(pick));
    if (ready.kind == SearchKind::kModel &&
        ready.picks.size() <= LowReady(*context)) {
      refill_wanted_ = true;
    }
    return true;
  }
  return false;
}

SearchKind StudyState::ChooseKindLocked(const SuggestionNeed& need,
                                        const ContextState& context) const {
  if (definition_->algorithm() == v1::RANDOM) return SearchKind::kRandom;
  if (need.exploit && model_ != nullptr) return SearchKind::kModel;
  const int64_t foreign =
      model_ == nullptr
          ? 0
          : model_->quality.rows() - static_cast<int64_t>(context.finished());
  if (!need.any_fixed && !context.design_done && foreign < kMinForeignRows &&
      context.explored() < definition_->initial_trials()) {
    return SearchKind::kDesign;
  }
  return model_ == nullptr ? SearchKind::kSpaceFilling : SearchKind::kModel;
}

size_t StudyState::SearchCountLocked(SearchKind kind, size_t count,
                                     const ContextState& context) const {
  if (kind == SearchKind::kDesign) return definition_->initial_trials();
  size_t wanted = std::max(count, context.taken() / kBatchShare);
  if (kind == SearchKind::kModel) wanted = std::max(wanted, kModelBatch);
  // As many as were asked for while the last search ran, and half as many as
  // those when nobody had to wait.
  wanted = std::max(wanted, context.waited ? std::max(kFirstWaitedBatch,
                                                      2 * context.last_batch)
                                           : context.last_batch / 2);
  return std::min(wanted,
                  kind == SearchKind::kModel ? kMaxModelBatch : kMaxBatch);
}

SearchTask StudyState::MakeTaskLocked(const SuggestionNeed& need,
                                      SearchKind kind, size_t count,
                                      const ContextState& context) const {
  SearchTask task;
  task.kind = kind;
  task.group = context.group;
  task.count = count;
  task.definition = definition_;
  task.model = model_;
  SeedUse use = SeedUse::kModel;
  if (kind == SearchKind::kDesign) use = SeedUse::kDesign;
  if (kind == SearchKind::kSpaceFilling) use = SeedUse::kSpaceFilling;
  if (kind == SearchKind::kRandom) use = SeedUse::kRandom;
  task.seed = DeriveSeed(*definition_, context, use,
                         kind == SearchKind::kModel ? task.model_version() : 0);
  task.context = context.context;
  task.fixed = need.fixed;
  task.baseline = context.baseline;
  task.bounds =
      definition_->Bounds(context.baseline_tally().Means(*definition_));
  task.rows = rows_.Share();
  task.unmeasured = context.unmeasured();
  for (const auto& [number, active] : active_) {
    if (active.group == context.group) task.pending.push_back(active.point);
  }
  for (const auto& [key, point] : context.reserved()) {
    task.pending.push_back(point);
  }
  return task;
}

StudyState::Step StudyState::TakeAtHand(const SuggestionNeed& need,
                                        size_t count, std::vector<Pick>* picks,
                                        SearchTask* task) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(need.group)];
  const size_t before = picks->size();
  const bool lost_first = !need.exploit || model_ == nullptr;
  while (picks->size() - before < count) {
    if (lost_first && (TakeLostLocked(need, &context, picks) ||
                       TakeBaselineLocked(need, &context, picks))) {
      continue;
    }
    if (!TakeReadyLocked(need, &context, picks)) break;
  }
  if (picks->size() > before) return Step::kPicked;
  if (context.searching && !need.any_fixed) return Step::kWait;
  if (!need.any_fixed && context.exhausted_at == context.taken()) {
    return Step::kExhausted;
  }
  SearchKind kind = ChooseKindLocked(need, context);
  if (kind == SearchKind::kDesign && context.design_made) {
    // What the design holds is all taken.
    context.design_done = true;
    kind = ChooseKindLocked(need, context);
  }
  *task = MakeTaskLocked(
      need, kind,
      need.any_fixed ? count : SearchCountLocked(kind, count, context),
      context);
  if (!need.any_fixed) {
    context.searching = true;
    context.BeginBatch(task->count);
  }
  return Step::kSearch;
}

void StudyState::FinishSearch(const SuggestionNeed& need,
                              const SearchTask& task,
                              absl::StatusOr<std::vector<Pick>> found,
                              size_t count, std::vector<Pick>* picks) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(task.group)];
  if (need.any_fixed) {
    if (!found.ok()) return;
    for (Pick& pick : *found) {
      if (picks->size() >= count) return;
      if (context.IsTaken(pick.key)) continue;
      context.Reserve(pick);
      picks->push_back(std::move(pick));
    }
    return;
  }
  context.searching = false;
  searched_.NotifyAll();
  if (!found.ok()) {
    // Fewer may be found in time.
    context.BeginBatch(context.last_batch / 4);
    return;
  }
  if (task.kind == SearchKind::kDesign) {
    context.design_made = true;
  } else if (found->empty()) {
    context.exhausted_at = context.taken();
  }
  context.ready.kind = task.kind;
  context.ready.model_version = task.model_version();
  context.ready.picks.assign(std::make_move_iterator(found->begin()),
                             std::make_move_iterator(found->end()));
}

void StudyState::WaitForSearch(int group, absl::Duration timeout) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(group)];
  if (!context.searching) return;
  context.waited = true;
  searched_.WaitFor(&mu_, timeout);
}

SearchTask StudyState::MakeRandomTask(const SuggestionNeed& need) {
  MutexLock lock(&mu_);
  const ContextState& context = *contexts_[static_cast<size_t>(need.group)];
  SearchTask task = MakeTaskLocked(need, SearchKind::kRandom, 1, context);
  task.model = nullptr;
  task.seed = DeriveSeed(*definition_, context, SeedUse::kFallback, 0);
  return task;
}

bool StudyState::Reserve(int group, const Pick& pick) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(group)];
  if (context.IsTaken(pick.key)) return false;
  context.Reserve(pick);
  return true;
}

void StudyState::Release(int group, const Pick& pick) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(group)];
  if (pick.suggestion.source() == v1::Trial::REPEAT) return;
  if (pick.lost.value != 0) {
    TrialRecord& record = records_[pick.lost.value];
    record.reissued = false;
    context.Confirm(pick.key);
    if (IsLost(record.state)) context.lost().push_front(pick);
    return;
  }
  context.Release(pick);
  if (pick.suggestion.source() == v1::Trial::BASELINE) return;
  context.ready.picks.push_front(pick);
}

void StudyState::Discard(int group, const Pick& pick) {
  MutexLock lock(&mu_);
  contexts_[static_cast<size_t>(group)]->Confirm(pick.key);
}

bool StudyState::AnyRunning(int group) const {
  MutexLock lock(&mu_);
  if (!contexts_[static_cast<size_t>(group)]->reserved().empty()) return true;
  return std::any_of(active_.begin(), active_.end(), [&](const auto& entry) {
    return entry.second.group == group;
  });
}

Existence StudyState::AnyValid(int group) const {
  MutexLock lock(&mu_);
  return contexts_[static_cast<size_t>(group)]->any_valid;
}

void StudyState::RememberAnyValid(int group, Existence any) {
  MutexLock lock(&mu_);
  contexts_[static_cast<size_t>(group)]->any_valid = any;
}

std::shared_ptr<const Model> StudyState::model() const {
  MutexLock lock(&mu_);
  return model_;
}

bool StudyState::NeedsTraining() const {
  if (definition_->algorithm() == v1::RANDOM) return false;
  MutexLock lock(&mu_);
  if (unstored_ != nullptr) return true;
  if (rows_.size() < kMinTrainingRows || rows_.size() <= trained_rows_) {
    return false;
  }
  const double wanted =
      std::max(1.0, kNewRowsShare * static_cast<double>(trained_rows_));
  return static_cast<double>(rows_.size() - trained_rows_) >= wanted;
}

StudyState::TrainingInput StudyState::BeginTraining() {
  MutexLock lock(&mu_);
  trained_rows_ = rows_.size();
  return {rows_.Share(), ListBoundsLocked(), model_version_ + 1};
}

void StudyState::SetModelVersion(int64_t version) {
  MutexLock lock(&mu_);
  model_version_ = version;
}

void StudyState::RetryTraining() {
  MutexLock lock(&mu_);
  trained_rows_ = 0;
}

void StudyState::KeepUnstored(std::shared_ptr<const Model> model) {
  MutexLock lock(&mu_);
  unstored_ = std::move(model);
}

std::shared_ptr<const Model> StudyState::TakeUnstored() {
  MutexLock lock(&mu_);
  return std::exchange(unstored_, nullptr);
}

std::vector<SearchTask> StudyState::MakeAheadTasks(
    std::shared_ptr<const Model> model) {
  MutexLock lock(&mu_);
  std::vector<ContextState*> recent;
  for (const auto& context : contexts_) {
    if (context->last_asked > 0) recent.push_back(context.get());
  }
  std::sort(recent.begin(), recent.end(),
            [](const ContextState* a, const ContextState* b) {
              return a->last_asked > b->last_asked;
            });
  recent.resize(std::min(recent.size(), kMaxAheadContexts));
  SuggestionNeed need;
  need.fixed = definition_->space()->Free();
  std::vector<SearchTask> tasks;
  model_.swap(model);  // what is chosen below is for the new model
  for (ContextState* context : recent) {
    if (ChooseKindLocked(need, *context) != SearchKind::kModel) continue;
    tasks.push_back(MakeTaskLocked(
        need, SearchKind::kModel,
        SearchCountLocked(SearchKind::kModel, 1, *context), *context));
    context->BeginBatch(tasks.back().count);
  }
  model_.swap(model);
  return tasks;
}

bool StudyState::NeedsRefill() const {
  MutexLock lock(&mu_);
  return refill_wanted_;
}

std::vector<SearchTask> StudyState::MakeRefillTasks() {
  MutexLock lock(&mu_);
  refill_wanted_ = false;
  std::vector<SearchTask> tasks;
  if (model_ == nullptr) return tasks;
  SuggestionNeed need;
  need.fixed = definition_->space()->Free();
  for (const auto& context : contexts_) {
    const ContextState::ReadyList& ready = context->ready;
    if (context->searching || ready.kind != SearchKind::kModel ||
        ready.model_version != model_->quality.model_version() ||
        ready.picks.size() > LowReady(*context)) {
      continue;
    }
    tasks.push_back(MakeTaskLocked(
        need, SearchKind::kModel,
        SearchCountLocked(SearchKind::kModel, context->last_batch, *context),
        *context));
    context->BeginBatch(tasks.back().count);
    for (const Pick& pick : ready.picks) {
      tasks.back().unmeasured.insert(pick.key);
      tasks.back().pending.push_back(pick.point);
    }
  }
  return tasks;
}

void StudyState::Refill(const SearchTask& task, std::vector<Pick> picks) {
  MutexLock lock(&mu_);
  ContextState& context = *contexts_[static_cast<size_t>(task.group)];
  if (context.ready.kind != task.kind ||
      context.ready.model_version != task.model_version()) {
    return;
  }
  for (Pick& pick : picks) context.ready.picks.push_back(std::move(pick));
}

void StudyState::InstallModel(std::shared_ptr<const Model> model,
                              std::vector<AheadList> lists) {
  MutexLock lock(&mu_);
  trained_rows_ =
      std::max(trained_rows_, static_cast<size_t>(model->quality.rows()));
  model_version_ = model->quality.model_version();
  model_ = std::move(model);
  for (AheadList& list : lists) {
    ContextState& context = *contexts_[static_cast<size_t>(list.task.group)];
    context.ready.kind = list.task.kind;
    context.ready.model_version = list.task.model_version();
    context.ready.picks.assign(std::make_move_iterator(list.picks.begin()),
                               std::make_move_iterator(list.picks.end()));
  }
}

}  // namespace cubicml
