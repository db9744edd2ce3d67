// SPDX-License-Identifier: Apache-2.0
//
// A StudyStore in memory that passes the same contract suite as the real one.
// Plain maps and full scans: it is meant to be obviously right.

#ifndef CUBICML_TESTS_SUPPORT_FAKE_STUDY_STORE_H_
#define CUBICML_TESTS_SUPPORT_FAKE_STUDY_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "storage/list_query.h"
#include "storage/study_store.h"

namespace cubicml {

// Thread-safe.
class FakeStudyStore final : public StudyStore {
 public:
  // Without a clock, time is a counter that goes on by a second with every
  // change, so that no two changes look simultaneous.
  explicit FakeStudyStore(const Clock* clock = nullptr) : clock_(clock) {}

  // From now on every change fails with this and changes nothing; OK ends it.
  void SetWriteError(absl::Status error);
  // Is called at the start of each ScanTrials, and may call the store.
  void SetScanHook(std::function<void()> hook);
  // The same for each UpdateStudy that the hook does not call.
  void SetUpdateHook(std::function<void()> hook);
  // How often ScanTrials was called, as by who loads a study.
  int64_t scans() const;

  absl::StatusOr<StoredStudy> CreateStudy(const v1::Study& study,
                                          const RequestKey& key) override;
  absl::StatusOr<StoredStudy> GetStudy(absl::string_view name) override;
  absl::StatusOr<StudyPage> ListStudies(const ListOptions& options) override;
  absl::StatusOr<StoredStudy> UpdateStudy(absl::string_view name,
                                          const StudyMutation& mutation,
                                          const RequestKey& key) override;
  absl::Status DeleteStudy(absl::string_view name, absl::string_view etag,
                           bool force, const RequestKey& key) override;
  absl::StatusOr<std::vector<v1::Trial>> CreateTrials(
      StudyId study, std::vector<v1::Trial> trials,
      const RequestKey& key) override;
  absl::StatusOr<v1::Trial> UpdateTrial(StudyId study, TrialNumber number,
                                        const TrialMutation& mutation,
                                        const RequestKey& key) override;
  absl::StatusOr<v1::Trial> GetTrial(StudyId study,
                                     TrialNumber number) override;
  absl::StatusOr<TrialPage> ListTrials(StudyId study,
                                       const ListOptions& options) override;
  absl::Status ScanTrials(
      StudyId study, const ScanOptions& options,
      const std::function<absl::Status(v1::Trial&&)>& visit) override;
  absl::StatusOr<std::map<v1::Trial::State, int64_t>> CountTrials(
      StudyId study) override;
  absl::StatusOr<std::vector<TrialKey>> ListExpiredLeases(
      absl::Time now) override;
  absl::StatusOr<std::optional<std::vector<v1::Trial>>> FindCreatedTrials(
      const RequestKey& key) override;
  absl::StatusOr<int64_t> DeleteRequestsBefore(absl::Time before) override;
  absl::Status CreateModel(StudyId study, const StoredModel& model) override;
  absl::StatusOr<StoredModel> GetLatestModel(StudyId study) override;
  absl::Status WriteHealth() const override;

 private:
  struct StudyRecord {
    v1::Study study;
    std::string objective;
    int64_t revision = 1;
    int64_t next_number = 1;
    std::map<int64_t, v1::Trial> trials;
    std::map<int64_t, StoredModel> models;
  };
  struct CreatedTrials {
    int64_t study = 0;
    std::vector<int64_t> numbers;
  };
  struct Request {
    std::string method;
    uint64_t fingerprint = 0;
    int64_t create_time_us = 0;
    std::variant<std::monostate, StoredStudy, v1::Trial, CreatedTrials> answer;
  };

  void RunUpdateHook();
  int64_t NowMicros() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StudyRecord* FindStudy(absl::string_view name, int64_t* id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StudyRecord* FindStudy(StudyId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null when the key is new. INVALID_ARGUMENT when it is another call's.
  absl::StatusOr<const Request*> FindRequest(const RequestKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Request* AddRequest(const RequestKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::vector<v1::Trial>> TrialsOf(const CreatedTrials& created)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;  // may be null
  mutable Mutex mu_;
  absl::Status write_error_ ABSL_GUARDED_BY(mu_);
  int64_t ticks_ ABSL_GUARDED_BY(mu_) = 0;
  std::function<void()> scan_hook_ ABSL_GUARDED_BY(mu_);
  std::function<void()> update_hook_ ABSL_GUARDED_BY(mu_);
  int64_t scans_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_study_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<int64_t, StudyRecord> studies_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Request> requests_ ABSL_GUARDED_BY(mu_);
  Request unnamed_request_ ABSL_GUARDED_BY(mu_);  // what is not remembered
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_FAKE_STUDY_STORE_H_
