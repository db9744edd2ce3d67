// SPDX-License-Identifier: Apache-2.0
//
// A child process writes with several threads and says over a pipe what was
// acknowledged; it is killed with SIGKILL at a random moment. After a restart
// everything that was acknowledged must be there, again and again on the same
// database.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "storage/sqlite_study_store.h"
#include "tests/storage/example_resources.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

// What the child says. Smaller than PIPE_BUF: never torn.
struct Ack {
  enum Kind : int32_t { kOpened, kCreated, kUpdated } kind = kOpened;
  int64_t number = 0;
  int32_t attempt = 0;  // of kUpdated
  char request_id[32] = {};
};

constexpr int kWriters = 4;

absl::StatusOr<std::unique_ptr<SqliteStudyStore>> OpenStore(
    const std::string& path) {
  static const SystemClock clock;
  SqliteStudyStore::Options options;
  options.path = path;
  options.clock = &clock;
  options.readers = 2;
  return SqliteStudyStore::Open(options);
}

void Tell(int fd, const Ack& ack) {
  if (write(fd, &ack, sizeof(ack)) != sizeof(ack)) _exit(3);
}

// Creates trials and counts up their attempts until it is killed.
void WriteForEver(SqliteStudyStore* store, StudyId study, int fd,
                  const std::string& prefix) {
  for (int i = 0;; ++i) {
    Ack ack;
    ack.kind = Ack::kCreated;
    const std::string id = absl::StrCat(prefix, "-", i);
    id.copy(ack.request_id, sizeof(ack.request_id) - 1);
    const auto created =
        store->CreateTrials(study, {ExampleTrial(1)}, {id, "SuggestTrials", 1});
    if (!created.ok()) _exit(4);
    ack.number = NumberOf((*created)[0]);
    Tell(fd, ack);
    for (int j = 0; j < 3; ++j) {
      const auto updated =
          store->UpdateTrial(study, TrialNumber{ack.number},
                             [](v1::Trial* trial) {
                               trial->set_attempt(trial->attempt() + 1);
                               return absl::OkStatus();
                             },
                             {});
      if (!updated.ok()) _exit(5);
      ack.kind = Ack::kUpdated;
      ack.attempt = updated->attempt();
      Tell(fd, ack);
    }
  }
}

[[noreturn]] void RunChild(const std::string& path, StudyId study, int fd,
                           int round) {
  auto store = OpenStore(path);
  if (!store.ok()) _exit(2);
  Tell(fd, Ack());
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      WriteForEver(store->get(), study, fd, absl::StrCat(round, "-", i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(6);  // never: the writers do not end
}

class CrashTest : public ::testing::Test {
 protected:
  // Reads acknowledgements; false at the end of the pipe.
  static bool ReadAck(int fd, Ack* ack) {
    ssize_t got = 0;
    do {
      got = read(fd, ack, sizeof(*ack));
    } while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(sizeof(*ack));
  }

  void Note(const Ack& ack) {
    if (ack.kind == Ack::kCreated) {
      attempts_[ack.number] = 1;
      requests_[ack.request_id] = ack.number;
    } else if (ack.kind == Ack::kUpdated) {
      attempts_[ack.number] = ack.attempt;
    }
  }

  // Runs a child until `acks` acknowledgements have come, and kills it.
  void RunAndKill(const std::string& path, StudyId study, int round,
                  uint64_t acks) {
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(pipe_fds[0]);
      RunChild(path, study, pipe_fds[1], round);
    }
    close(pipe_fds[1]);
    Ack ack;
    for (uint64_t i = 0; i < acks && ReadAck(pipe_fds[0], &ack); ++i) {
      Note(ack);
    }
    kill(child, SIGKILL);
    while (ReadAck(pipe_fds[0], &ack)) Note(ack);
    close(pipe_fds[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child exited with " << status;
  }

  void ExpectAllThere(SqliteStudyStore* store, StudyId study) {
    for (const auto& [number, attempt] : attempts_) {
      const auto trial = store->GetTrial(study, TrialNumber{number});
      ASSERT_THAT(trial, IsOk());
      EXPECT_GE(trial->attempt(), attempt);
    }
    for (const auto& [id, number] : requests_) {
      const auto found = store->FindCreatedTrials({id, "SuggestTrials", 1});
      ASSERT_THAT(found, IsOk());
      ASSERT_TRUE(found->has_value()) << id;
      EXPECT_EQ(NumberOf((**found)[0]), number);
    }
  }

  std::map<int64_t, int32_t> attempts_;
  std::map<std::string, int64_t> requests_;
};

TEST_F(CrashTest, EverythingAcknowledgedSurvivesKillMinusNine) {
  TempDir dir;
  const std::string path = dir.PathOf("cubicml.db");
  StudyId study;
  {
    CUBICML_ASSERT_OK_AND_ASSIGN(auto store, OpenStore(path));
    CUBICML_ASSERT_OK_AND_ASSIGN(const StoredStudy created,
                                 store->CreateStudy(ExampleStudy("a"), {}));
    study = created.id;
  }
  Rng rng(11);
  for (int round = 0; round < 25; ++round) {
    // 1: killed right after opening.
    RunAndKill(path, study, round, rng.Below(150) + 1);
    if (HasFatalFailure()) return;
    {
      CUBICML_ASSERT_OK_AND_ASSIGN(auto store, OpenStore(path));
      ExpectAllThere(store.get(), study);
      if (HasFatalFailure()) return;
    }
    CUBICML_ASSERT_OK_AND_ASSIGN(Database db, Database::Open({.path = path}));
    EXPECT_THAT(db.QueryText("PRAGMA integrity_check"), IsOkAndHolds("ok"));
    EXPECT_THAT(db.QueryInt("SELECT count(*) FROM pragma_foreign_key_check"),
                IsOkAndHolds(0));
    EXPECT_THAT(db.QueryInt("SELECT (SELECT sum(trials) FROM trial_counts) - "
                            "(SELECT count(*) FROM trials)"),
                IsOkAndHolds(0));
  }
  EXPECT_GT(attempts_.size(), 100u);
}

}  // namespace
}  // namespace cubicml
