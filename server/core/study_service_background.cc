// SPDX-License-Identifier: Apache-2.0
//
// What StudyService does without being asked: training and leases.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/core/model_checkpoint.h"
#include "server/core/model_training.h"
#include "server/core/study_service.h"
#include "server/core/study_service_state.h"
#include "server/core/trial_change.h"

namespace cubicml {
namespace {

constexpr int kStudyPage = 1000;
// What tuning_service.proto promises, and how often we look.
constexpr absl::Duration kRequestMemory = absl::Hours(24);
constexpr absl::Duration kForgettingInterval = absl::Hours(1);

}  // namespace

// Null when there is none, which was told to whom it concerns.
std::shared_ptr<const Model> StudyService::State::MakeModel(
    StudyState* study, const std::stop_token& stop) {
  const std::string& name = study->definition().name();
  const absl::StatusOr<std::shared_ptr<const Model>> model =
      TrainModel(study->definition(), study->BeginTraining(), *options.trainer,
                 *options.clock, stop);
  if (model.ok()) return *model;
  if (absl::IsCancelled(model.status())) {
    study->RetryTraining();
    return nullptr;
  }
  // Too few rows; more will come.
  if (absl::IsFailedPrecondition(model.status())) return nullptr;
  observer().OnModelRefused(name, model.status());
  if (absl::IsOutOfRange(model.status())) {
    // Nothing is broken: the next one has more trials to learn from.
    CUBICML_LOG(INFO) << "a new model is not used" << Field("study", name)
                      << Field("why", model.status().message());
    return nullptr;
  }
  CUBICML_LOG(WARNING) << "a model was refused" << Field("study", name)
                       << Field("why", model.status().ToString());
  return nullptr;
}

// Returns whether it is stored.
bool StudyService::State::StoreModel(StudyState* study,
                                     std::shared_ptr<const Model> model) {
  const absl::Status stored = store().CreateModel(
      study->id(), FormatModel(study->definition(), *model));
  if (stored.ok()) return true;
  if (absl::IsNotFound(stored)) return false;  // the study was deleted
  CUBICML_LOG(WARNING) << "a model could not be stored"
                       << Field("study", study->definition().name())
                       << Field("why", stored.ToString());
  if (absl::IsAlreadyExists(stored)) {
    study->SetModelVersion(model->quality.model_version());
    study->RetryTraining();
  } else {
    // Training takes minutes: what it made waits for the store.
    study->KeepUnstored(std::move(model));
  }
  return false;
}

bool StudyService::State::TrainStudy(StudyState* study,
                                     const std::stop_token& stop) {
  // What is trained now could not be stored.
  if (!store().WriteHealth().ok()) return false;
  std::shared_ptr<const Model> model = study->TakeUnstored();
  if (model == nullptr) model = MakeModel(study, stop);
  if (model == nullptr || study->retired() || !StoreModel(study, model)) {
    return false;
  }
  std::vector<StudyState::AheadList> lists;
  for (SearchTask& task : study->MakeAheadTasks(model)) {
    absl::StatusOr<std::vector<Pick>> picks = RunSearch(task, stop);
    // Without a list the next call searches itself, and tells what is wrong.
    if (picks.ok()) lists.push_back({std::move(task), *std::move(picks)});
  }
  study->InstallModel(model, std::move(lists));
  observer().OnModelTrained(study->definition().name(), model->quality);
  return true;
}

int StudyService::TrainPendingStudies(std::stop_token stop) {
  int trained = 0;
  for (const std::shared_ptr<StudyState>& study : state_->cache.List()) {
    if (stop.stop_requested()) break;
    if (study->NeedsTraining() && state_->TrainStudy(study.get(), stop)) {
      ++trained;
    } else if (study->NeedsRefill()) {
      for (const SearchTask& task : study->MakeRefillTasks()) {
        absl::StatusOr<std::vector<Pick>> picks = RunSearch(task, stop);
        if (picks.ok()) study->Refill(task, *std::move(picks));
      }
    }
  }
  return trained;
}

int StudyService::State::ExpireStudyLeases(StudyState* study) {
  int expired = 0;
  for (const StudyState::LapsedLease& lapsed : study->ListLapsedLeases()) {
    const absl::StatusOr<Change> change = ChangeTrial(
        study, lapsed.number,
        [&](v1::Trial* trial) {
          return ApplyExpiry(lapsed.expire_time, options.clock->Now(), trial);
        },
        RequestKey{});
    if (!change.ok()) {
      CUBICML_LOG(WARNING) << "a lapsed lease could not be ended"
                           << Field("study", study->definition().name())
                           << Field("trial", lapsed.number.value)
                           << Field("why", change.status().ToString());
      continue;
    }
    if (!change->changed) continue;
    ++expired;
    observer().OnLeaseExpired(study->definition().name());
    OnTrialEnded(*study, change->trial);
  }
  return expired;
}

absl::Status StudyService::State::LoadStudiesWithLapsedLeases() {
  CUBICML_ASSIGN_OR_RETURN(const std::vector<StudyStore::TrialKey> lapsed,
                           store().ListExpiredLeases(options.clock->Now()));
  std::set<StudyId> missing;
  for (const StudyStore::TrialKey& key : lapsed) missing.insert(key.study);
  for (const std::shared_ptr<StudyState>& study : cache.List()) {
    missing.erase(study->id());
  }
  ListOptions list;
  list.page_size = kStudyPage;
  while (!missing.empty()) {
    CUBICML_ASSIGN_OR_RETURN(const StudyPage page, store().ListStudies(list));
    for (const StoredStudy& stored : page.studies) {
      if (missing.erase(stored.id) == 0) continue;
      const absl::StatusOr<StudyCache::Handle> study =
          cache.Acquire(stored.study.name());
      // UNAVAILABLE: it takes longer, and will be there in the next round.
      if (study.ok() || absl::IsUnavailable(study.status())) continue;
      CUBICML_LOG(WARNING) << "a study with lapsed leases cannot be loaded"
                           << Field("study", stored.study.name())
                           << Field("why", study.status().ToString());
    }
    if (page.next_page_token.empty()) break;
    list.page_token = page.next_page_token;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> StudyService::ExpireLeases() {
  CUBICML_RETURN_IF_ERROR(state_->LoadStudiesWithLapsedLeases());
  int expired = 0;
  for (const std::shared_ptr<StudyState>& listed : state_->cache.List()) {
    if (listed->ListLapsedLeases().empty()) continue;
    const absl::StatusOr<StudyCache::Handle> study =
        state_->cache.Acquire(listed->definition().name());
    // Deleted just now.
    if (!study.ok()) continue;
    expired += state_->ExpireStudyLeases(study->get());
  }
  return expired;
}

absl::StatusOr<int64_t> StudyService::ForgetOldRequests() {
  const Clock& clock = *state_->options.clock;
  {
    MutexLock lock(&state_->mu);
    const absl::Duration now = clock.Elapsed();
    if (now < state_->next_forgetting.value_or(now)) return 0;
    // Also after an error: a store that refuses writes is not asked each
    // second.
    state_->next_forgetting = now + kForgettingInterval;
  }
  return state_->store().DeleteRequestsBefore(clock.Now() - kRequestMemory);
}

void StudyService::WaitForWork(absl::Duration timeout, std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { state_->WakeTrainer(); });
  MutexLock lock(&state_->mu);
  const absl::Duration end = state_->options.clock->Elapsed() + timeout;
  while (!state_->work_pending && !stop.stop_requested()) {
    const absl::Duration left = end - state_->options.clock->Elapsed();
    if (left <= absl::ZeroDuration() ||
        !state_->work.WaitFor(&state_->mu, left)) {
      break;
    }
  }
  state_->work_pending = false;
}

}  // namespace cubicml
