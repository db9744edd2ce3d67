// SPDX-License-Identifier: Apache-2.0
//
// The domain: what each call of cubicml.v1.TuningService means, in
// absl::Status in and out. Knows no gRPC, no SQL, no LibTorch. The transport in
// server/rpc is a shell around it; tests and replays call it directly.

#ifndef CUBICML_SERVER_CORE_STUDY_SERVICE_H_
#define CUBICML_SERVER_CORE_STUDY_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "predictor/trainer.h"
#include "storage/study_store.h"

namespace cubicml {

// What the service tells its observer (metrics). Called on worker and trainer
// threads; must be thread-safe and quick.
class ServiceObserver {
 public:
  virtual ~ServiceObserver() = default;
  virtual void OnSuggestion(absl::string_view /*study*/,
                            v1::Trial::Source /*source*/,
                            absl::Duration /*thinking_time*/) {}
  virtual void OnTrialEnded(absl::string_view /*study*/,
                            const v1::Trial& /*trial*/) {}
  virtual void OnModelTrained(absl::string_view /*study*/,
                              const v1::SurrogateQuality& /*quality*/) {}
  // A model that was not finite, or worse than none, and was not used.
  virtual void OnModelRefused(absl::string_view /*study*/,
                              const absl::Status& /*why*/) {}
  virtual void OnLeaseExpired(absl::string_view /*study*/) {}
};

struct StudyServiceOptions {
  StudyStore* store = nullptr;          // required; must outlive the service
  const Trainer* trainer = nullptr;     // required
  const Clock* clock = nullptr;         // required
  ServiceObserver* observer = nullptr;  // optional
  // Seeds studies that give none. 0: from the operating system.
  uint64_t seed = 0;
  // Time for one suggestion when the call has no deadline.
  absl::Duration default_deadline = absl::Seconds(5);
  // Studies held in memory; the least recently used are dropped.
  size_t max_cached_studies = 256;
  // That read studies into memory, so that SuggestTrials does not wait beyond
  // its deadline, and no call longer than StudyCache::kMaxWait. 0: the calls do
  // it themselves, to the end, which is the same each time.
  size_t load_threads = 0;
};

// Thread-safe. Each method lists its codes in tuning_service.proto; all pass on
// the store's. Calls may block on the store, never on training.
class StudyService {
 public:
  static absl::StatusOr<std::unique_ptr<StudyService>> Create(
      StudyServiceOptions options);
  ~StudyService();

  absl::StatusOr<v1::Study> CreateStudy(const v1::CreateStudyRequest& request);
  absl::StatusOr<v1::Study> GetStudy(const v1::GetStudyRequest& request);
  // `check` ends a read that nobody waits for any more; so in the other lists.
  absl::StatusOr<v1::ListStudiesResponse> ListStudies(
      const v1::ListStudiesRequest& request, const ReadCheck& check = nullptr);
  absl::StatusOr<v1::Study> UpdateStudy(const v1::UpdateStudyRequest& request);
  absl::Status DeleteStudy(const v1::DeleteStudyRequest& request);

  // `deadline`: on Clock::Elapsed(). Answers before it. `is_cancelled` tells
  // whether the caller went away (null: never does); CANCELLED then. No trial
  // is made that nobody would receive.
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request, absl::Duration deadline,
      const std::function<bool()>& is_cancelled = nullptr);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request);
  absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request);
  absl::StatusOr<v1::Trial> CancelTrial(const v1::CancelTrialRequest& request);

  // One message of the stream; adds to `response`. `index` is that of the
  // first trial over the whole stream.
  absl::Status ImportTrials(absl::string_view parent,
                            std::span<const v1::Trial> trials, int64_t index,
                            v1::ImportTrialsResponse* response);
  absl::StatusOr<v1::Trial> GetTrial(const v1::GetTrialRequest& request);
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request, const ReadCheck& check = nullptr);
  // The trials with a number above `after`. Stops with the first error of
  // `write` and returns it, so that a transport can take them page by page.
  absl::Status ExportTrials(
      const v1::ExportTrialsRequest& request,
      const std::function<absl::Status(v1::Trial&&)>& write,
      TrialNumber after = {}, const ReadCheck& check = nullptr);
  absl::StatusOr<v1::ListOptimalTrialsResponse> ListOptimalTrials(
      const v1::ListOptimalTrialsRequest& request);
  absl::StatusOr<v1::PredictResponse> Predict(
      const v1::PredictRequest& request);

  // Trains every study that has enough new results, on the calling thread, and
  // refills the suggestions of its contexts. Returns how many were trained.
  // The training thread of the server calls it in a loop (TrainingLoop); a
  // replay calls it by hand, which makes it deterministic.
  int TrainPendingStudies(std::stop_token stop);
  // Ends the trials whose lease has lapsed. Returns how many.
  absl::StatusOr<int> ExpireLeases();
  // Forgets the answers to calls of more than a day ago; looks at most once an
  // hour, however often it is called. Returns how many were forgotten.
  absl::StatusOr<int64_t> ForgetOldRequests();
  // Returns when a study may need training, after `timeout`, or when a stop is
  // requested.
  void WaitForWork(absl::Duration timeout, std::stop_token stop);

 private:
  struct State;
  explicit StudyService(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_SERVICE_H_
