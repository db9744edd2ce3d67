// SPDX-License-Identifier: Apache-2.0

#include "client/replay/replay_run.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

// A server that is busy is asked again; it says so after it has waited itself.
constexpr int kMaxBusyAnswers = 100;

// One run. Not thread-safe.
class Run {
 public:
  Run(const TableStudy& study, const ReplayOptions& options, Tuner* tuner)
      : study_(study), options_(options), tuner_(tuner) {}

  absl::StatusOr<std::vector<ReplayedTrial>> Replay() {
    CUBICML_RETURN_IF_ERROR(CreateStudy());
    const absl::Status status = RunTrials();
    v1::DeleteStudyRequest request;
    request.set_name(study_name_);
    request.set_force(true);
    const absl::Status deleted = tuner_->DeleteStudy(request);
    CUBICML_RETURN_IF_ERROR(status);
    CUBICML_RETURN_IF_ERROR(deleted);
    return std::move(done_);
  }

 private:
  absl::Status CreateStudy() {
    // The baseline is drawn like a trial of a random search: a better choice
    // would flatter the tuner, since the table does not say what was usual.
    Rng rng = Rng::Derive(options_.seed, {0});
    const size_t baseline = rng.Below(study_.problem().configurations.size());
    v1::CreateStudyRequest request;
    request.set_study_id(options_.study_id);
    *request.mutable_study() =
        study_.Make(options_.algorithm, options_.seed, baseline);
    CUBICML_ASSIGN_OR_RETURN(const v1::Study created,
                             tuner_->CreateStudy(request));
    study_name_ = created.name();
    return absl::OkStatus();
  }

  absl::Status RunTrials() {
    int started = 0;
    bool exhausted = false;
    while (true) {
      while (!exhausted && started < options_.trials &&
             static_cast<int>(running_.size()) < options_.jobs) {
        CUBICML_ASSIGN_OR_RETURN(std::optional<v1::Trial> trial, Suggest());
        if (trial.has_value()) {
          running_.push_back(*std::move(trial));
          ++started;
        }
        exhausted = !trial.has_value();
      }
      if (running_.empty()) return absl::OkStatus();
      CUBICML_RETURN_IF_ERROR(FinishOldest());
    }
  }

  absl::StatusOr<std::optional<v1::Trial>> Suggest() {
    v1::SuggestTrialsRequest request;
    request.set_parent(study_name_);
    request.set_count(1);
    study_.SetContext(&request);
    for (int i = 0; i < kMaxBusyAnswers; ++i) {
      CUBICML_ASSIGN_OR_RETURN(v1::SuggestTrialsResponse response,
                               tuner_->SuggestTrials(request));
      if (response.trials_size() > 0) {
        return std::optional<v1::Trial>(std::move(*response.mutable_trials(0)));
      }
      if (response.no_trial_reason() == v1::SuggestTrialsResponse::EXHAUSTED) {
        return std::optional<v1::Trial>();
      }
      if (response.no_trial_reason() != v1::SuggestTrialsResponse::BUSY) {
        return absl::InternalError(
            absl::StrCat("no trial: ", response.no_trial_detail()));
      }
    }
    return absl::UnavailableError("the tuner is always busy");
  }

  absl::Status FinishOldest() {
    const v1::Trial trial = std::move(running_.front());
    running_.pop_front();
    CUBICML_ASSIGN_OR_RETURN(const size_t configuration, study_.Find(trial));
    CUBICML_RETURN_IF_ERROR(
        tuner_->CompleteTrial(study_.Complete(trial, configuration)).status());
    Note(trial, configuration);
    if (static_cast<int>(done_.size()) % options_.retrain_every == 0) {
      tuner_->Train();
    }
    return absl::OkStatus();
  }

  void Note(const v1::Trial& trial, size_t configuration) {
    const MeasuredProblem& problem = study_.problem();
    const MeasuredConfiguration& one = problem.configurations[configuration];
    ReplayedTrial replayed;
    replayed.configuration = configuration;
    replayed.source = trial.suggestion().source();
    replayed.searcher = trial.suggestion().searcher();
    replayed.ok = one.ok;
    replayed.objective = one.objective;
    if (one.ok) {
      const double share = study_.table().spec.maximize
                               ? one.objective / problem.best
                               : problem.best / one.objective;
      percent_ = std::min(percent_, 100.0 * (1.0 - share));
    }
    replayed.percent_below_best = percent_;
    done_.push_back(std::move(replayed));
  }

  const TableStudy& study_;
  const ReplayOptions& options_;
  Tuner* const tuner_;
  std::string study_name_;
  std::deque<v1::Trial> running_;
  std::vector<ReplayedTrial> done_;
  double percent_ = 100.0;
};

}  // namespace

absl::StatusOr<std::vector<ReplayedTrial>> ReplayRun(
    const TableStudy& study, const ReplayOptions& options, Tuner* tuner) {
  return Run(study, options, tuner).Replay();
}

}  // namespace cubicml
