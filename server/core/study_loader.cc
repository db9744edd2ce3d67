// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/core/model_checkpoint.h"
#include "server/core/parsed_trial.h"
#include "server/core/time_proto.h"

namespace cubicml {
namespace {

// The wall clock may have jumped since the lease was stored, so what is left of
// it is never more than a lease, and never ends before `start` plus a lease.
absl::Duration LeaseLeft(const StudyLoaderOptions& options,
                         const StudyDefinition& definition,
                         const v1::Trial& trial) {
  const absl::Duration stored =
      TimeFromProto(trial.lease_expire_time()) - options.clock->Now();
  const absl::Duration grace =
      options.start + definition.lease() - options.clock->Elapsed();
  return std::max(std::min(stored, definition.lease()), grace);
}

absl::Status LoadTrials(const StudyLoaderOptions& options, StudyState* study) {
  return options.store->ScanTrials(
      study->id(), {.check = options.check}, [&](v1::Trial&& trial) {
        const v1::Trial::State state = trial.state();
        const std::string name = trial.name();
        const absl::Duration lease_left =
            LeaseLeft(options, study->definition(), trial);
        const absl::StatusOr<ParsedTrial> parsed =
            ParseStoredTrial(study->definition(), std::move(trial));
        if (parsed.ok()) {
          study->Apply(*parsed, study->NewTicket(), lease_left);
        } else {
          study->ApplyUnreadable(state);
          CUBICML_LOG(WARNING)
              << "a trial does not fit its study" << Field("trial", name)
              << Field("why", parsed.status().ToString());
        }
        return absl::OkStatus();
      });
}

// Without a model the study is trained anew.
absl::Status LoadModel(const StudyLoaderOptions& options, StudyState* study) {
  const absl::StatusOr<StoredModel> stored =
      options.store->GetLatestModel(study->id());
  if (absl::IsNotFound(stored.status())) return absl::OkStatus();
  CUBICML_RETURN_IF_ERROR(stored.status());
  const absl::StatusOr<std::shared_ptr<const Model>> model =
      ParseModel(study->definition(), *options.trainer, *stored);
  if (model.ok()) {
    study->InstallModel(*model, {});
    return absl::OkStatus();
  }
  study->SetModelVersion(stored->quality.model_version());
  CUBICML_LOG(WARNING) << "a stored model is not used"
                       << Field("study", study->definition().name())
                       << Field("why", model.status().ToString());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<StudyState>> LoadStudy(
    const StudyLoaderOptions& options, absl::string_view name) {
  CUBICML_ASSIGN_OR_RETURN(StoredStudy stored, options.store->GetStudy(name));
  absl::StatusOr<std::shared_ptr<const StudyDefinition>> definition =
      StudyDefinition::Parse(std::move(stored.study));
  if (!definition.ok()) {
    return absl::DataLossError(
        absl::StrCat("the stored definition of ", name,
                     " cannot be read: ", definition.status().message()));
  }
  auto study = std::make_shared<StudyState>(stored.id, *std::move(definition),
                                            options.clock);
  CUBICML_RETURN_IF_ERROR(LoadTrials(options, study.get()));
  CUBICML_RETURN_IF_ERROR(LoadModel(options, study.get()));
  return study;
}

}  // namespace cubicml
