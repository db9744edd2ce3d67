// SPDX-License-Identifier: Apache-2.0
//
// The contract of durable storage: studies, trials, models, and the answers to
// requests that were carried out. Everything the service knows is in here; what
// it keeps in memory is a cache.
//
// Protos are the domain values. A trial is changed only by a function that the
// store applies to the stored trial inside its transaction, so that two calls
// never overwrite each other.

#ifndef CUBICML_STORAGE_STUDY_STORE_H_
#define CUBICML_STORAGE_STUDY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Which call a change belongs to. With an id, a change that was carried out is
// not carried out again: the stored answer is returned instead.
struct RequestKey {
  std::string id;      // empty: not remembered
  std::string method;  // "CreateStudy"
  // Of the request without its id: the same id with another fingerprint is
  // INVALID_ARGUMENT on the field request_id.
  uint64_t fingerprint = 0;
};

// A study as it is stored. `study.progress` is not stored; `study.etag`,
// create_time and update_time are set by the store.
struct StoredStudy {
  StudyId id;
  v1::Study study;
};

// Whether somebody still waits for what a long read finds: the first error ends
// the read and is its answer. Asked before the read, and often while it goes
// on, by whatever thread reads: it must be quick, and must not call the store.
// Null: it is waited for.
using ReadCheck = std::function<absl::Status()>;

// Of the resources in one page, serialized. Lets an answer, with what surrounds
// them, stay below the 4 MiB that gRPC takes by default.
inline constexpr size_t kMaxPageBytes = size_t{3} << 20;

// A page of a list. `order_by` and `filter` are those of the request
// (tuning_service.proto); `page_token` is one that the store gave for the same
// order and filter, or empty.
struct ListOptions {
  int page_size = 50;
  std::string page_token;
  std::string filter;
  std::string order_by;
  // A page ends before the resource that would make it larger; it has one at
  // least.
  size_t max_bytes = kMaxPageBytes;
  ReadCheck check;
};

// Every trial with a number above `after` that `filter` lets through.
struct ScanOptions {
  TrialNumber after = {};
  std::string filter = {};
  ReadCheck check = {};
};

struct StudyPage {
  std::vector<StoredStudy> studies;
  std::string next_page_token;
};

struct TrialPage {
  std::vector<v1::Trial> trials;
  std::string next_page_token;
};

// A trained model and what is known about it.
struct StoredModel {
  v1::SurrogateQuality quality;  // holds the version
  std::string checkpoint;        // bytes of the predictor
};

// Trials that ScanTrials reads at once. Who takes a scan page by page, from
// where the last page ended, takes as many: others would be read in vain.
inline constexpr size_t kScanPageTrials = 256;

// Thread-safe. Every method may block on the disk. Besides the codes listed,
// all may return:
//   RESOURCE_EXHAUSTED  the queue of writes, or the disk, is full, or another
//                       process holds the database
//   DATA_LOSS           what is stored cannot be read
//   UNAVAILABLE         the store is closed, or refuses writes after a failure
//   INTERNAL            anything else of the database
// A method that returns OK has made its change durable; one that returns an
// error has changed nothing, but for INTERNAL and DATA_LOSS after a commit that
// the disk failed on: whether a restart finds that change is not known.
class StudyStore {
 public:
  // Changes a copy of what is stored; an error it returns is the caller's
  // answer and nothing is changed. Pure: it may run on another thread and more
  // than once.
  using StudyMutation = std::function<absl::Status(v1::Study*)>;
  using TrialMutation = std::function<absl::Status(v1::Trial*)>;

  virtual ~StudyStore() = default;

  // ---- Studies ----

  // ALREADY_EXISTS (naming the study) when the name is taken. Whether the
  // taken one is identical is for the caller to find out.
  virtual absl::StatusOr<StoredStudy> CreateStudy(const v1::Study& study,
                                                  const RequestKey& key) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<StoredStudy> GetStudy(absl::string_view name) = 0;
  // INVALID_ARGUMENT for a bad token, filter or order.
  virtual absl::StatusOr<StudyPage> ListStudies(const ListOptions& options) = 0;
  // NOT_FOUND, or the mutation's error. The etag changes.
  virtual absl::StatusOr<StoredStudy> UpdateStudy(absl::string_view name,
                                                  const StudyMutation& mutation,
                                                  const RequestKey& key) = 0;
  // Deletes it with its trials and models. NOT_FOUND; ABORTED when `etag` is
  // set and not the current one; FAILED_PRECONDITION when trials are ACTIVE or
  // STOPPING and not `force`.
  virtual absl::Status DeleteStudy(absl::string_view name,
                                   absl::string_view etag, bool force,
                                   const RequestKey& key) = 0;

  // ---- Trials ----

  // Stores new trials under the next numbers and returns them with name,
  // create_time and update_time set. All or none. NOT_FOUND when the study is
  // gone.
  virtual absl::StatusOr<std::vector<v1::Trial>> CreateTrials(
      StudyId study, std::vector<v1::Trial> trials, const RequestKey& key) = 0;
  // NOT_FOUND, or the mutation's error. update_time is set.
  virtual absl::StatusOr<v1::Trial> UpdateTrial(StudyId study,
                                                TrialNumber number,
                                                const TrialMutation& mutation,
                                                const RequestKey& key) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<v1::Trial> GetTrial(StudyId study,
                                             TrialNumber number) = 0;
  // INVALID_ARGUMENT for a bad token, filter or order.
  virtual absl::StatusOr<TrialPage> ListTrials(StudyId study,
                                               const ListOptions& options) = 0;
  // Visits trials by number, without holding more than a page in memory. Stops
  // with the visitor's first error and returns it. INVALID_ARGUMENT for a bad
  // filter.
  virtual absl::Status ScanTrials(
      StudyId study, const ScanOptions& options,
      const std::function<absl::Status(v1::Trial&&)>& visit) = 0;
  // How many trials of the study are in each state; states without any may be
  // left out, and a study that is gone has none. Quick even for a study of a
  // million trials: lists of studies show these numbers.
  virtual absl::StatusOr<std::map<v1::Trial::State, int64_t>> CountTrials(
      StudyId study) = 0;
  // ACTIVE and STOPPING trials of all studies whose lease ended before `now`.
  struct TrialKey {
    StudyId study;
    TrialNumber number;
  };
  virtual absl::StatusOr<std::vector<TrialKey>> ListExpiredLeases(
      absl::Time now) = 0;

  // ---- Answers to requests ----

  // The trials that the CreateTrials call with this key answered, as they are
  // now; nullopt when there was none. INVALID_ARGUMENT when the id belongs to
  // another call.
  virtual absl::StatusOr<std::optional<std::vector<v1::Trial>>>
  FindCreatedTrials(const RequestKey& key) = 0;
  // Forgets answers older than `before`. Returns how many.
  virtual absl::StatusOr<int64_t> DeleteRequestsBefore(absl::Time before) = 0;

  // ---- Models ----

  // Stores a new model; older ones of the study than the last two are dropped.
  // NOT_FOUND; ALREADY_EXISTS when the version is not above the last.
  virtual absl::Status CreateModel(StudyId study, const StoredModel& model) = 0;
  // The newest; NOT_FOUND when there is none.
  virtual absl::StatusOr<StoredModel> GetLatestModel(StudyId study) = 0;

  // ---- Health ----

  // OK while writes are accepted; otherwise why they are not.
  virtual absl::Status WriteHealth() const = 0;
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_STUDY_STORE_H_
