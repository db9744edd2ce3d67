// SPDX-License-Identifier: Apache-2.0
//
// What the parts of StudyService share: study_service.cc (studies),
// study_service_suggest.cc and study_service_trials.cc (trials),
// study_service_background.cc (training and leases).

#ifndef CUBICML_SERVER_CORE_STUDY_SERVICE_STATE_H_
#define CUBICML_SERVER_CORE_STUDY_SERVICE_STATE_H_

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/search_deadline.h"
#include "server/core/study_cache.h"
#include "server/core/study_service.h"
#include "server/core/study_state.h"
#include "server/core/suggestion.h"
#include "storage/study_store.h"

namespace cubicml {

// Thread-safe.
struct StudyService::State {
  explicit State(StudyServiceOptions options_in);

  // A trial after a call. `changed` is false when there was nothing to change,
  // or the call had been carried out before.
  struct Change {
    v1::Trial trial;
    bool changed = false;
  };
  // Applies `mutation` to the stored trial, and the result to the study.
  absl::StatusOr<Change> ChangeTrial(StudyState* study, TrialNumber number,
                                     const StudyStore::TrialMutation& mutation,
                                     const RequestKey& key);
  // Tells the observer, and wakes the trainer when there is enough to learn.
  void OnTrialEnded(const StudyState& study, const v1::Trial& trial);
  void WakeTrainer();
  // As the store answered, now or to the same request before.
  absl::StatusOr<StoredStudy> StoreUpdate(const v1::UpdateStudyRequest& request,
                                          const RequestKey& key);
  // As it is now, with its progress.
  static v1::Study FormatStudy(const StudyState& study);
  // As the store answered, with its progress now.
  v1::Study FormatStored(StoredStudy stored);
  // What is known without loading the study.
  absl::StatusOr<v1::StudyProgress> CountProgress(StudyId study);

  // ---- Suggestions (study_service_suggest.cc) ----

  // The active trials that the client holds, with their leases renewed.
  std::vector<v1::Trial> RenewHeldTrials(StudyState* study,
                                         const SuggestionCall& call,
                                         const std::string& client_id);
  // Stores what was picked; what could not be stored may be picked again.
  // INVALID_ARGUMENT naming count when the answer, which also holds `held`,
  // would be too large.
  absl::StatusOr<std::vector<v1::Trial>> CreateTrials(
      StudyState* study, const v1::SuggestTrialsRequest& request,
      const SuggestionCall& call, const std::vector<Pick>& picks,
      const std::vector<v1::Trial>& held, const RequestKey& key);

  // ---- Background (study_service_background.cc) ----

  // Adds to `response`. An error has stored the batches before it.
  absl::Status StoreImported(StudyState* study, std::vector<v1::Trial> trials,
                             v1::ImportTrialsResponse* response);
  std::shared_ptr<const Model> MakeModel(StudyState* study,
                                         const std::stop_token& stop);
  bool StoreModel(StudyState* study, std::shared_ptr<const Model> model);
  // Returns whether the study has a new model.
  bool TrainStudy(StudyState* study, const std::stop_token& stop);
  // Returns how many trials ended.
  int ExpireStudyLeases(StudyState* study);
  // Loads the studies that hold lapsed leases and are not in memory.
  absl::Status LoadStudiesWithLapsedLeases();

  StudyServiceOptions options;
  ServiceObserver& observer() const { return *options.observer; }
  StudyStore& store() const { return *options.store; }

  StudyCache cache;
  SearchTimer timer;
  Mutex mu;
  CondVar work;
  bool work_pending ABSL_GUARDED_BY(mu) = false;
  // When old requests are looked for, on Clock::Elapsed; unset: at once.
  std::optional<absl::Duration> next_forgetting ABSL_GUARDED_BY(mu);
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_SERVICE_STATE_H_
