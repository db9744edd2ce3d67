// SPDX-License-Identifier: Apache-2.0
//
// The calls about trials, but for SuggestTrials (study_service_suggest.cc).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/optimal_trials.h"
#include "server/core/parsed_trial.h"
#include "server/core/request_check.h"
#include "server/core/resource_name.h"
#include "server/core/study_service.h"
#include "server/core/study_service_state.h"
#include "server/core/time_proto.h"
#include "server/core/trial_change.h"
#include "server/core/trial_import.h"
#include "server/core/trial_state.h"

namespace cubicml {
namespace {

constexpr int kDefaultOptimalTrials = 10;
constexpr int kMaxConfigurations = 1000;
constexpr int kMaxRefusals = 100;
// Imported trials in one transaction of the store.
constexpr size_t kImportBatch = 500;

}  // namespace

void StudyService::State::OnTrialEnded(const StudyState& study,
                                       const v1::Trial& trial) {
  observer().OnTrialEnded(study.definition().name(), trial);
  if (!IsMeasured(trial.state()) || !study.NeedsTraining()) return;
  WakeTrainer();
}

void StudyService::State::WakeTrainer() {
  {
    MutexLock lock(&mu);
    work_pending = true;
  }
  work.NotifyAll();
}

absl::Status StudyService::State::StoreImported(
    StudyState* study, std::vector<v1::Trial> trials,
    v1::ImportTrialsResponse* response) {
  for (size_t begin = 0; begin < trials.size(); begin += kImportBatch) {
    const size_t end = std::min(trials.size(), begin + kImportBatch);
    std::vector<v1::Trial> batch(
        std::make_move_iterator(trials.begin() +
                                static_cast<std::ptrdiff_t>(begin)),
        std::make_move_iterator(trials.begin() +
                                static_cast<std::ptrdiff_t>(end)));
    const uint64_t ticket = study->NewTicket();
    CUBICML_ASSIGN_OR_RETURN(
        std::vector<v1::Trial> stored,
        store().CreateTrials(study->id(), std::move(batch), RequestKey{}));
    response->set_imported(response->imported() +
                           static_cast<int64_t>(stored.size()));
    for (v1::Trial& trial : stored) {
      observer().OnTrialEnded(study->definition().name(), trial);
      const absl::StatusOr<ParsedTrial> parsed =
          ParseStoredTrial(study->definition(), std::move(trial));
      if (parsed.ok()) study->Apply(*parsed, ticket, absl::ZeroDuration());
    }
  }
  if (study->NeedsTraining()) WakeTrainer();
  return absl::OkStatus();
}

absl::StatusOr<v1::HeartbeatResponse> StudyService::Heartbeat(
    const v1::HeartbeatRequest& request) {
  CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                           ParseTrialName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(name.study));
  CUBICML_RETURN_IF_ERROR(CheckHeartbeat(request, study->definition()));
  const absl::Duration lease = study->definition().lease();
  // An expired trial is its holder's again, unless someone else got its
  // configuration meanwhile.
  const bool revive = study->ClaimExpired(name.number);
  const absl::StatusOr<State::Change> change = state_->ChangeTrial(
      study.get(), name.number,
      [&](v1::Trial* trial) {
        return ApplyHeartbeat(request, lease, revive,
                              state_->options.clock->Now(), trial);
      },
      RequestKey{});
  if (revive && !(change.ok() && change->changed)) {
    study->ReturnExpired(name.number);
  }
  CUBICML_RETURN_IF_ERROR(change.status());
  v1::HeartbeatResponse response;
  response.set_should_stop(change->trial.state() != v1::Trial::ACTIVE);
  *response.mutable_lease() =
      DurationToProto(change->changed ? lease : absl::ZeroDuration());
  return response;
}

absl::StatusOr<v1::Trial> StudyService::CompleteTrial(
    const v1::CompleteTrialRequest& request) {
  CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                           ParseTrialName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("CompleteTrial", request.request_id(), request));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(name.study));
  const StudyDefinition& definition = study->definition();
  CUBICML_RETURN_IF_ERROR(CheckCompletion(request, definition));
  const BaselineMetrics baseline = study->FindBaseline(name.number);
  CUBICML_ASSIGN_OR_RETURN(State::Change change,
                           state_->ChangeTrial(
                               study.get(), name.number,
                               [&](v1::Trial* trial) {
                                 return ApplyCompletion(
                                     request, definition, baseline,
                                     state_->options.clock->Now(), trial);
                               },
                               key));
  if (change.changed) state_->OnTrialEnded(*study.get(), change.trial);
  return std::move(change.trial);
}

absl::StatusOr<v1::Trial> StudyService::CancelTrial(
    const v1::CancelTrialRequest& request) {
  CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                           ParseTrialName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("CancelTrial", request.request_id(), request));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(name.study));
  CUBICML_ASSIGN_OR_RETURN(State::Change change,
                           state_->ChangeTrial(
                               study.get(), name.number,
                               [&](v1::Trial* trial) {
                                 return ApplyCancellation(
                                     state_->options.clock->Now(), trial);
                               },
                               key));
  if (change.changed && change.trial.state() == v1::Trial::CANCELLED) {
    state_->OnTrialEnded(*study.get(), change.trial);
  }
  return std::move(change.trial);
}

absl::Status StudyService::ImportTrials(absl::string_view parent,
                                        std::span<const v1::Trial> trials,
                                        int64_t index,
                                        v1::ImportTrialsResponse* response) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", parent));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(std::string(parent)));
  ImportCheck check(study.get());
  std::vector<v1::Trial> accepted;
  for (const v1::Trial& trial : trials) {
    absl::StatusOr<v1::Trial> checked =
        check.Check(trial, state_->options.clock->Now());
    if (checked.ok()) {
      accepted.push_back(*std::move(checked));
    } else {
      response->set_refused(response->refused() + 1);
      if (response->refusals_size() < kMaxRefusals) {
        v1::ImportTrialsResponse::Refusal& refusal = *response->add_refusals();
        refusal.set_index(index);
        refusal.set_message(std::string(checked.status().message()));
      }
    }
    ++index;
  }
  return state_->StoreImported(study.get(), std::move(accepted), response);
}

absl::StatusOr<v1::Trial> StudyService::GetTrial(
    const v1::GetTrialRequest& request) {
  CUBICML_ASSIGN_OR_RETURN(const TrialName name,
                           ParseTrialName("name", request.name()));
  CUBICML_ASSIGN_OR_RETURN(const StudyId study,
                           state_->cache.FindId(name.study));
  absl::StatusOr<v1::Trial> trial =
      state_->store().GetTrial(study, name.number);
  CUBICML_RETURN_IF_ERROR(
      WithTrialName(trial.status(), name.study, name.number));
  return trial;
}

absl::StatusOr<v1::ListTrialsResponse> StudyService::ListTrials(
    const v1::ListTrialsRequest& request, const ReadCheck& check) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", request.parent()));
  ListOptions options;
  options.check = check;
  CUBICML_ASSIGN_OR_RETURN(options.page_size,
                           ParsePageSize(request.page_size()));
  options.page_token = request.page_token();
  options.filter = request.filter();
  options.order_by = request.order_by();
  CUBICML_ASSIGN_OR_RETURN(const StudyId study,
                           state_->cache.FindId(request.parent()));
  CUBICML_ASSIGN_OR_RETURN(TrialPage page,
                           state_->store().ListTrials(study, options));
  v1::ListTrialsResponse response;
  for (v1::Trial& trial : page.trials) {
    *response.add_trials() = std::move(trial);
  }
  response.set_next_page_token(std::move(page.next_page_token));
  return response;
}

absl::Status StudyService::ExportTrials(
    const v1::ExportTrialsRequest& request,
    const std::function<absl::Status(v1::Trial&&)>& write, TrialNumber after,
    const ReadCheck& check) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", request.parent()));
  CUBICML_ASSIGN_OR_RETURN(const StudyId study,
                           state_->cache.FindId(request.parent()));
  return state_->store().ScanTrials(
      study, {.after = after, .filter = request.filter(), .check = check},
      write);
}

absl::StatusOr<v1::ListOptimalTrialsResponse> StudyService::ListOptimalTrials(
    const v1::ListOptimalTrialsRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", request.parent()));
  CUBICML_ASSIGN_OR_RETURN(
      const int limit,
      ParsePageSize(request.page_size(), kDefaultOptimalTrials));
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(request.parent()));
  CUBICML_ASSIGN_OR_RETURN(
      const std::vector<bool> matches,
      MatchContexts(study->definition(), study->Contexts(), request.context()));
  v1::ListOptimalTrialsResponse response;
  size_t bytes = 0;
  for (const TrialNumber number :
       FindOptimalTrials(study->definition(), study->Rows(), matches,
                         static_cast<size_t>(limit))) {
    CUBICML_ASSIGN_OR_RETURN(*response.add_trials(),
                             state_->store().GetTrial(study->id(), number));
    const int count = response.trials_size();
    bytes += response.trials(count - 1).ByteSizeLong();
    if (bytes <= kMaxPageBytes || count == 1) continue;
    return FieldError(
        "page_size",
        absl::StrCat("more than ", count - 1,
                     " of these trials are too large for one answer; ask for "
                     "at most as many"));
  }
  return response;
}

absl::StatusOr<v1::PredictResponse> StudyService::Predict(
    const v1::PredictRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", request.parent()));
  if (request.configurations_size() > kMaxConfigurations) {
    return FieldError("configurations",
                      absl::StrCat("has more than ", kMaxConfigurations));
  }
  CUBICML_ASSIGN_OR_RETURN(const StudyCache::Handle study,
                           state_->cache.Acquire(request.parent()));
  const StudyDefinition& definition = study->definition();
  FeatureMatrix features;
  features.columns = definition.featurizer().columns();
  std::vector<std::vector<MetricBound>> bounds;
  for (int i = 0; i < request.configurations_size(); ++i) {
    const v1::Configuration& configuration = request.configurations(i);
    const std::string prefix = absl::StrCat("configurations[", i, "].");
    const absl::StatusOr<Context> context =
        definition.space()->ParseContext(configuration.context());
    CUBICML_RETURN_IF_ERROR(WithFieldPrefix(context.status(), prefix));
    const absl::StatusOr<Point> point =
        definition.space()->ParsePoint(configuration.parameters(), *context);
    CUBICML_RETURN_IF_ERROR(WithFieldPrefix(point.status(), prefix));
    definition.featurizer().Append(*point, *context, &features);
    bounds.push_back(study->FindBounds(*context));
  }
  const std::shared_ptr<const Model> model = study->model();
  if (model == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        request.parent(), " has no model yet; it needs a few measured trials"));
  }
  v1::PredictResponse response;
  *response.mutable_surrogate() = model->quality;
  if (features.rows == 0) return response;
  CUBICML_ASSIGN_OR_RETURN(const std::vector<Forecast> forecasts,
                           model->predictor->Predict(features));
  for (size_t i = 0; i < forecasts.size(); ++i) {
    *response.add_predictions() =
        FormatPrediction(definition, forecasts[i], bounds[i]);
  }
  const size_t bytes = response.ByteSizeLong();
  if (bytes > kMaxPageBytes && response.predictions_size() > 1) {
    return FieldError(
        "configurations",
        absl::StrCat("their predictions take ", bytes,
                     " bytes, more than one answer may have; ask for fewer"));
  }
  return response;
}

}  // namespace cubicml
