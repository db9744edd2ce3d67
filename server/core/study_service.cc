// SPDX-License-Identifier: Apache-2.0
//
// The calls about studies. Those about trials are in study_service_trials.cc
// and study_service_suggest.cc.

#include "server/core/study_service.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/stable_hash.h"
#include "base/status_macros.h"
#include "server/core/parsed_trial.h"
#include "server/core/request_check.h"
#include "server/core/resource_name.h"
#include "server/core/study_service_state.h"
#include "server/core/trial_change.h"
#include "server/core/trial_state.h"

namespace cubicml {
namespace {

void ClearOutputOnly(v1::Study* study) {
  study->clear_etag();
  study->clear_create_time();
  study->clear_update_time();
  study->clear_progress();
}

// Whether `stored` is what a request that asks for `wanted` would have made.
bool SameDefinition(v1::Study wanted, v1::Study stored, bool seed_chosen) {
  ClearOutputOnly(&wanted);
  ClearOutputOnly(&stored);
  if (seed_chosen) {
    wanted.mutable_settings()->set_seed(stored.settings().seed());
  }
  return google::protobuf::util::MessageDifferencer::Equals(wanted, stored);
}

// Copies the fields that the mask names. Everything that may be changed stands
// here.
absl::Status CopyMasked(const v1::UpdateStudyRequest& request,
                        v1::Study* study) {
  if (request.update_mask().paths().empty()) {
    return FieldError("update_mask", "names nothing to change");
  }
  const v1::Study& from = request.study();
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "display_name") {
      study->set_display_name(from.display_name());
    } else if (path == "parameters") {
      *study->mutable_parameters() = from.parameters();
    } else if (path == "context") {
      *study->mutable_context() = from.context();
    } else if (path == "constraints") {
      *study->mutable_constraints() = from.constraints();
    } else if (path == "metrics") {
      *study->mutable_metrics() = from.metrics();
    } else if (path == "metric_constraints") {
      *study->mutable_metric_constraints() = from.metric_constraints();
    } else if (path == "settings") {
      const uint64_t seed = study->settings().seed();
      *study->mutable_settings() = from.settings();
      if (from.settings().seed() == 0) {
        study->mutable_settings()->set_seed(seed);
      }
    } else if (path == "labels") {
      *study->mutable_labels() = from.labels();
    } else {
      CUBICML_RETURN_IF_ERROR(CheckText("update_mask", path, 128));
      return FieldError(
          "update_mask",
          absl::StrCat("'", path,
                       "' cannot be changed; display_name, parameters, "
                       "context, constraints, metrics, metric_constraints, "
                       "settings and labels can"));
    }
  }
  return absl::OkStatus();
}

// What an update makes of the study as it is stored. Pure; checking what is new
// may take seconds.
absl::StatusOr<v1::Study> ApplyUpdate(const v1::UpdateStudyRequest& request,
                                      const v1::Study& stored) {
  const std::string& etag = request.study().etag();
  if (!etag.empty() && etag != stored.etag()) {
    return absl::AbortedError(absl::StrCat(
        stored.name(), " has changed since that etag was read: read it again"));
  }
  CUBICML_ASSIGN_OR_RETURN(const std::shared_ptr<const StudyDefinition> before,
                           StudyDefinition::Parse(stored));
  v1::Study changed = stored;
  CUBICML_RETURN_IF_ERROR(CopyMasked(request, &changed));
  const absl::StatusOr<std::shared_ptr<const StudyDefinition>> after =
      StudyDefinition::Parse(changed);
  CUBICML_RETURN_IF_ERROR(WithFieldPrefix(after.status(), "study."));
  CUBICML_RETURN_IF_ERROR((*after)->CheckExtends(*before));
  CUBICML_RETURN_IF_ERROR(
      WithFieldPrefix((*after)->CheckNew(before.get()), "study."));
  return changed;
}

}  // namespace

StudyService::State::State(StudyServiceOptions options_in)
    : options(options_in),
      cache({options.store, options.trainer, options.clock,
             options.clock->Elapsed()},
            options.max_cached_studies, options.load_threads),
      timer(options.clock) {}

absl::StatusOr<StudyService::State::Change> StudyService::State::ChangeTrial(
    StudyState* study, TrialNumber number,
    const StudyStore::TrialMutation& mutation, const RequestKey& key) {
  uint64_t ticket = 0;
  absl::StatusOr<v1::Trial> trial = store().UpdateTrial(
      study->id(), number,
      [&](v1::Trial* stored) -> absl::Status {
        CUBICML_RETURN_IF_ERROR(mutation(stored));
        ticket = study->NewTicket();
        return absl::OkStatus();
      },
      key);
  if (IsAlreadySo(trial.status())) {
    CUBICML_ASSIGN_OR_RETURN(v1::Trial unchanged,
                             store().GetTrial(study->id(), number));
    return Change{std::move(unchanged), false};
  }
  CUBICML_RETURN_IF_ERROR(
      WithTrialName(trial.status(), study->definition().name(), number));
  // No ticket was drawn: the store gave the answer of an earlier call.
  if (ticket == 0) return Change{*std::move(trial), false};
  const absl::StatusOr<ParsedTrial> parsed =
      ParseStoredTrial(study->definition(), *trial);
  if (parsed.ok()) {
    study->Apply(*parsed, ticket, study->definition().lease());
  } else {
    CUBICML_LOG(WARNING) << "a trial does not fit its study"
                         << Field("trial", trial->name())
                         << Field("why", parsed.status().ToString());
  }
  return Change{*std::move(trial), true};
}

v1::Study StudyService::State::FormatStudy(const StudyState& study) {
  v1::Study proto = study.definition().study();
  *proto.mutable_progress() = study.Progress();
  return proto;
}

absl::StatusOr<std::unique_ptr<StudyService>> StudyService::Create(
    StudyServiceOptions options) {
  if (options.store == nullptr || options.trainer == nullptr ||
      options.clock == nullptr) {
    return absl::InvalidArgumentError(
        "a StudyService needs a store, a trainer and a clock");
  }
  if (options.max_cached_studies == 0 ||
      options.default_deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "max_cached_studies and default_deadline must be positive");
  }
  static ServiceObserver* const silent = new ServiceObserver();
  if (options.observer == nullptr) options.observer = silent;
  return std::unique_ptr<StudyService>(
      new StudyService(std::make_unique<State>(options)));
}

StudyService::StudyService(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

StudyService::~StudyService() = default;

absl::StatusOr<v1::Study> StudyService::CreateStudy(
    const v1::CreateStudyRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyId("study_id", request.study_id()));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("CreateStudy", request.request_id(), request));
  const std::string name = FormatStudyName(request.study_id());
  v1::Study study = request.study();
  if (!study.name().empty() && study.name() != name) {
    return FieldError("study.name", "must be empty or studies/{study_id}");
  }
  study.set_name(name);
  ClearOutputOnly(&study);
  const bool choose_seed = study.settings().seed() == 0;
  if (choose_seed) {
    const uint64_t seed =
        state_->options.seed == 0
            ? Rng::NewSeed()
            : Rng::Derive(state_->options.seed, {StableHash(name)})();
    study.mutable_settings()->set_seed(std::max<uint64_t>(1, seed));
  }
  const absl::StatusOr<std::shared_ptr<const StudyDefinition>> definition =
      StudyDefinition::Parse(study);
  CUBICML_RETURN_IF_ERROR(WithFieldPrefix(definition.status(), "study."));
  const absl::Status is_new =
      WithFieldPrefix((*definition)->CheckNew(), "study.");
  if (request.validate_only()) {
    CUBICML_RETURN_IF_ERROR(is_new);
    return study;
  }
  if (is_new.ok()) {
    absl::StatusOr<StoredStudy> stored =
        state_->store().CreateStudy(study, key);
    if (stored.ok()) {
      stored->study.mutable_progress();
      return std::move(stored->study);
    }
    if (!absl::IsAlreadyExists(stored.status())) return stored.status();
  }
  // What is refused today may have been stored while it was not.
  const absl::StatusOr<StoredStudy> existing = state_->store().GetStudy(name);
  const bool same =
      existing.ok() && SameDefinition(study, existing->study, choose_seed);
  if (!same) {
    CUBICML_RETURN_IF_ERROR(is_new);
    CUBICML_RETURN_IF_ERROR(existing.status());
    return absl::AlreadyExistsError(
        absl::StrCat(name, " exists with another definition"));
  }
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle handle,
                           state_->cache.Acquire(name));
  return State::FormatStudy(*handle.get());
}

absl::StatusOr<v1::Study> StudyService::GetStudy(
    const v1::GetStudyRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(request.name()));
  return State::FormatStudy(*study.get());
}

absl::StatusOr<v1::ListStudiesResponse> StudyService::ListStudies(
    const v1::ListStudiesRequest& request, const ReadCheck& check) {
  ListOptions options;
  options.check = check;
  CUBICML_ASSIGN_OR_RETURN(options.page_size,
                           ParsePageSize(request.page_size()));
  options.page_token = request.page_token();
  options.filter = request.filter();
  options.order_by = request.order_by();
  CUBICML_ASSIGN_OR_RETURN(StudyPage page,
                           state_->store().ListStudies(options));
  v1::ListStudiesResponse response;
  response.set_next_page_token(std::move(page.next_page_token));
  for (StoredStudy& stored : page.studies) {
    v1::Study& study = *response.add_studies();
    study = std::move(stored.study);
    for (v1::Constraint& constraint : *study.mutable_constraints()) {
      if (constraint.has_table()) constraint.mutable_table()->clear_rows();
    }
    const std::shared_ptr<StudyState> loaded = state_->cache.Find(study.name());
    if (loaded != nullptr) {
      *study.mutable_progress() = loaded->Progress();
      continue;
    }
    CUBICML_ASSIGN_OR_RETURN(*study.mutable_progress(),
                             state_->CountProgress(stored.id));
  }
  return response;
}

absl::StatusOr<v1::StudyProgress> StudyService::State::CountProgress(
    StudyId study) {
  CUBICML_ASSIGN_OR_RETURN(const auto counts, store().CountTrials(study));
  v1::StudyProgress progress;
  for (const auto& [state, count] : counts) {
    progress.set_trials(progress.trials() + count);
    if (IsHeld(state)) {
      progress.set_active_trials(progress.active_trials() + count);
    }
    if (state == v1::Trial::SUCCEEDED) progress.set_succeeded_trials(count);
    if (state == v1::Trial::INFEASIBLE) progress.set_infeasible_trials(count);
  }
  return progress;
}

v1::Study StudyService::State::FormatStored(StoredStudy stored) {
  v1::StudyProgress& progress = *stored.study.mutable_progress();
  const absl::StatusOr<StudyCache::Handle> study =
      cache.Acquire(stored.study.name());
  // It may be gone since, and its name another's.
  if (study.ok() && (*study)->id() == stored.id) {
    progress = (*study)->Progress();
  } else if (absl::StatusOr<v1::StudyProgress> counted =
                 CountProgress(stored.id);
             counted.ok()) {
    progress = *std::move(counted);  // loading it takes longer
  }
  return std::move(stored.study);
}

absl::StatusOr<v1::Study> StudyService::UpdateStudy(
    const v1::UpdateStudyRequest& request) {
  const std::string& name = request.study().name();
  CUBICML_RETURN_IF_ERROR(CheckStudyName("study.name", name));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("UpdateStudy", request.request_id(), request));
  CUBICML_ASSIGN_OR_RETURN(StoredStudy updated,
                           state_->StoreUpdate(request, key));
  return state_->FormatStored(std::move(updated));
}

absl::StatusOr<StoredStudy> StudyService::State::StoreUpdate(
    const v1::UpdateStudyRequest& request, const RequestKey& key) {
  const std::string& name = request.study().name();
  std::optional<StudyCache::Handle> lock;
  while (true) {
    // Reads what there is, unless this request was carried out before.
    std::optional<v1::Study> before;
    absl::StatusOr<StoredStudy> answered = store().UpdateStudy(
        name,
        [&](v1::Study* stored) -> absl::Status {
          before = *stored;
          return absl::CancelledError("only read");
        },
        key);
    if (answered.ok() || !before.has_value()) return answered;
    // The first time while others go on using the study.
    CUBICML_ASSIGN_OR_RETURN(const v1::Study after,
                             ApplyUpdate(request, *before));
    const bool is_locked = lock.has_value();
    if (!is_locked) {
      // Nobody uses the study while it changes; who comes next finds it new.
      CUBICML_ASSIGN_OR_RETURN(StudyCache::Handle handle,
                               cache.AcquireExclusive(name));
      lock.emplace(std::move(handle));
    }
    bool has_changed = false;
    absl::StatusOr<StoredStudy> updated = store().UpdateStudy(
        name,
        [&](v1::Study* stored) -> absl::Status {
          has_changed = stored->etag() != before->etag();
          if (has_changed) {
            return absl::UnavailableError(
                absl::StrCat(name, " was changed at the same time: try again"));
          }
          *stored = after;
          return absl::OkStatus();
        },
        key);
    // Another update came before the lock: once more, with the lock.
    if (has_changed && !is_locked) continue;
    if (updated.ok()) lock->Drop();
    return updated;
  }
}

absl::Status StudyService::DeleteStudy(const v1::DeleteStudyRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("DeleteStudy", request.request_id(), request));
  CUBICML_ASSIGN_OR_RETURN(StudyCache::Handle lock,
                           state_->cache.AcquireExclusive(request.name()));
  CUBICML_RETURN_IF_ERROR(state_->store().DeleteStudy(
      request.name(), request.etag(), request.force(), key));
  // Of a request that was carried out before, the name may be another's now.
  const absl::StatusOr<StoredStudy> left =
      state_->store().GetStudy(request.name());
  const bool is_same =
      left.ok() && lock.get() != nullptr && lock->id() == left->id;
  if (!is_same) lock.Drop();
  return absl::OkStatus();
}

}  // namespace cubicml
