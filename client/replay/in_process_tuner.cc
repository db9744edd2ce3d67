// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <stop_token>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/replay/tuner.h"
#include "predictor/surrogate_trainer.h"
#include "server/core/study_service.h"
#include "storage/sqlite_study_store.h"

namespace cubicml {
namespace {

// Nobody waits for a replay's suggestions, and an answer that depends on the
// time would not be the same again.
constexpr absl::Duration kThinkingTime = absl::Hours(1);

class InProcessTuner final : public Tuner {
 public:
  InProcessTuner() : trainer_(NewSurrogateTrainer()) {}

  absl::Status Start() {
    SqliteStudyStore::Options store_options;
    store_options.clock = &clock_;
    store_options.durable = false;
    CUBICML_ASSIGN_OR_RETURN(store_, SqliteStudyStore::Open(store_options));
    StudyServiceOptions options;
    options.store = store_.get();
    options.trainer = trainer_.get();
    options.clock = &clock_;
    options.default_deadline = kThinkingTime;
    CUBICML_ASSIGN_OR_RETURN(service_, StudyService::Create(options));
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) override {
    return service_->CreateStudy(request);
  }
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) override {
    return service_->SuggestTrials(request, clock_.Elapsed() + kThinkingTime);
  }
  absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) override {
    return service_->CompleteTrial(request);
  }
  absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) override {
    return service_->DeleteStudy(request);
  }
  void Train() override { service_->TrainPendingStudies(std::stop_token()); }

 private:
  const SystemClock clock_;
  const std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<SqliteStudyStore> store_;
  std::unique_ptr<StudyService> service_;  // dies before what it uses
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> NewInProcessTuner() {
  auto tuner = std::make_unique<InProcessTuner>();
  CUBICML_RETURN_IF_ERROR(tuner->Start());
  return std::unique_ptr<Tuner>(std::move(tuner));
}

}  // namespace cubicml
