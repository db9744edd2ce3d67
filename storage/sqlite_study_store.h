// SPDX-License-Identifier: Apache-2.0
//
// The StudyStore of production: one SQLite file in WAL mode. Changes go through
// a CommitQueue, reads through a ReaderPool. The SQL stands above the function
// that uses it; studies are in sqlite_study_store.cc and sqlite_deletes.cc,
// trials in sqlite_trials.cc, lists in sqlite_lists.cc, models in
// sqlite_models.cc.

#ifndef CUBICML_STORAGE_SQLITE_STUDY_STORE_H_
#define CUBICML_STORAGE_SQLITE_STUDY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file_lock.h"
#include "storage/commit_observer.h"
#include "storage/commit_queue.h"
#include "storage/reader_pool.h"
#include "storage/sqlite_db.h"
#include "storage/study_store.h"

namespace cubicml {

// Thread-safe. Update mutations run on the calling thread on what is stored,
// and again when another change came between; only a trial that everybody
// changes at once has them run on the writer's thread.
class SqliteStudyStore final : public StudyStore {
 public:
  struct Options {
    // Of the database; PATH.lock, PATH-wal and PATH-shm stand beside it.
    // Empty: in memory, gone with the store.
    std::string path;
    const Clock* clock = nullptr;        // required; must outlive the store
    CommitObserver* observer = nullptr;  // optional; must outlive the store
    size_t readers = 8;
    size_t max_queue = 4096;  // changes that wait; more are refused
    // False: a change is not waited for until it is on the disk. The file
    // stays sound when the process dies, not when the machine does.
    bool durable = true;
    std::string vfs;  // name of a registered SQLite VFS; empty: the default
    // For the server before, which may not have ended quite.
    absl::Duration lock_wait = absl::Seconds(5);
    absl::Duration busy_timeout = absl::Seconds(5);
    absl::Duration disk_probe_interval = absl::Seconds(1);
  };

  // Creates the database when there is none, migrates it when it is old.
  //   FAILED_PRECONDITION  another server uses it, it is another program's, or
  //                        a newer program wrote it; says what to do
  //   DATA_LOSS            it is broken, or no database
  //   others               the file system's and SQLite's
  static absl::StatusOr<std::unique_ptr<SqliteStudyStore>> Open(
      const Options& options);
  ~SqliteStudyStore() override;

  // Finishes what has begun, refuses what comes, and leaves one file with
  // everything in it. Idempotent.
  absl::Status Close();

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
  SqliteStudyStore(const Options& options, std::optional<FileLock> lock,
                   Database writer, std::unique_ptr<ReaderPool> readers);

  // All that `read` sees is of one moment. It must not call the store.
  absl::Status Read(absl::FunctionRef<absl::Status(Database*)> read);
  // For lists and scans, which may take long: updates never wait for them, and
  // `check` ends them.
  absl::Status ReadLong(const ReadCheck& check,
                        absl::FunctionRef<absl::Status(Database*)> read);
  // Deletes a study that was set aside, in pieces that let others in between.
  absl::Status DeleteSetAside(int64_t id);
  // All of those that an end of the process has left.
  absl::Status FinishDeletes();
  int64_t NowMicros() const;
  // How often an update is tried on the calling thread.
  int OptimisticTries() const;

  const Clock* const clock_;
  const std::optional<FileLock> lock_;  // held until all below is gone
  // Null in memory, where the writer's connection is the only one.
  const std::unique_ptr<ReaderPool> readers_;
  CommitQueue queue_;
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_SQLITE_STUDY_STORE_H_
