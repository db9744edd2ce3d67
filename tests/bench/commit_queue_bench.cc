// SPDX-License-Identifier: Apache-2.0
//
// What durable storage costs: commits one by one and in groups, and the store's
// calls with 100 and with 100,000 trials. Rates are items per second over all
// threads. The database is made where TMPDIR says: that disk is measured.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "storage/commit_queue.h"
#include "storage/sqlite_study_store.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

const SystemClock& TheClock() {
  static const SystemClock* const clock = new SystemClock;
  return *clock;
}

// ---- Plain rows of 300 bytes ----

Database OpenRows(const std::string& path) {
  absl::StatusOr<Database> db = Database::Open({.path = path});
  CUBICML_CHECK(db.ok());
  CUBICML_CHECK(db->Execute("PRAGMA journal_mode = WAL;"
                            "PRAGMA synchronous = FULL;"
                            "CREATE TABLE t (x INTEGER PRIMARY KEY, b BLOB)")
                    .ok());
  return *std::move(db);
}

absl::Status InsertRow(Database* db) {
  static const std::string bytes(300, 'x');
  CUBICML_ASSIGN_OR_RETURN(Statement insert,
                           db->Cached("INSERT INTO t (b) VALUES (?1)"));
  insert.BindBlob(1, bytes);
  return insert.Run();
}

struct CommitEach {
  TempDir dir;
  Mutex mu;
  Database db = OpenRows(dir.PathOf("t.db"));
};

void BM_InsertCommitEach(benchmark::State& state) {
  static std::unique_ptr<CommitEach> rows;
  if (state.thread_index() == 0) rows = std::make_unique<CommitEach>();
  for (auto _ : state) {
    MutexLock lock(&rows->mu);
    auto transaction = Transaction::BeginImmediate(&rows->db);
    CUBICML_CHECK(transaction.ok());
    CUBICML_CHECK(InsertRow(&rows->db).ok());
    CUBICML_CHECK(transaction->Commit().ok());
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) rows.reset();
}

struct GroupCommit {
  TempDir dir;
  CommitQueue queue{OpenRows(dir.PathOf("t.db")), {.clock = &TheClock()}};
};

void BM_InsertGroupCommit(benchmark::State& state) {
  static std::unique_ptr<GroupCommit> rows;
  if (state.thread_index() == 0) rows = std::make_unique<GroupCommit>();
  for (auto _ : state) {
    CUBICML_CHECK(rows->queue.Apply(InsertRow).ok());
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) rows.reset();
}

BENCHMARK(BM_InsertCommitEach)->ThreadRange(1, 1)->UseRealTime();
BENCHMARK(BM_InsertCommitEach)->Threads(16)->Threads(64)->UseRealTime();
BENCHMARK(BM_InsertGroupCommit)->ThreadRange(1, 1)->UseRealTime();
BENCHMARK(BM_InsertGroupCommit)->Threads(16)->Threads(64)->UseRealTime();

// ---- The store ----

// As a suggestion makes it: 20 parameters, a prediction of two metrics.
v1::Trial BenchTrial() {
  v1::Trial trial;
  trial.set_state(v1::Trial::ACTIVE);
  for (int i = 0; i < 20; ++i) {
    (*trial.mutable_parameters())[absl::StrCat("parameter_", i)]
        .set_int64_value(i);
  }
  for (int i = 0; i < 5; ++i) {
    (*trial.mutable_context())[absl::StrCat("context_", i)].set_double_value(i);
  }
  trial.set_client_id("job-12345");
  trial.set_attempt(1);
  trial.mutable_lease_expire_time()->set_seconds(2'000'000'000);
  trial.mutable_suggestion()->set_source(v1::Trial::SEARCH);
  trial.mutable_suggestion()->set_model_version(3);
  auto& prediction = *trial.mutable_suggestion()->mutable_prediction();
  for (const char* metric : {"qps", "memory_gib"}) {
    (*prediction.mutable_metrics())[metric].set_mean(1000);
  }
  return trial;
}

struct Store {
  TempDir dir;
  std::unique_ptr<SqliteStudyStore> store;
  StudyId study;
  std::atomic<int64_t> next{0};  // trials updated so far

  explicit Store(int64_t history) {
    SqliteStudyStore::Options options;
    options.path = dir.PathOf("cubicml.db");
    options.clock = &TheClock();
    auto opened = SqliteStudyStore::Open(options);
    CUBICML_CHECK(opened.ok());
    store = *std::move(opened);
    v1::Study definition;
    definition.set_name("studies/bench");
    definition.add_objectives()->mutable_metric()->set_name("qps");
    const auto created = store->CreateStudy(definition, {});
    CUBICML_CHECK(created.ok());
    study = created->id;
    for (int64_t made = 0; made < history; made += 100) {
      CUBICML_CHECK(
          store
              ->CreateTrials(study, std::vector<v1::Trial>(100, BenchTrial()),
                             {})
              .ok());
    }
  }
};

// Of `history` trials; each benchmark gets a new one.
std::unique_ptr<Store>& TheStore() {
  static std::unique_ptr<Store> store;
  return store;
}
void MakeStore(const benchmark::State& state) {
  TheStore() = std::make_unique<Store>(state.range(0));
}
void DropStore(const benchmark::State& /*state*/) { TheStore().reset(); }

void BM_CreateTrials(benchmark::State& state) {
  Store& store = *TheStore();
  const v1::Trial trial = BenchTrial();
  for (auto _ : state) {
    CUBICML_CHECK(store.store->CreateTrials(store.study, {trial}, {}).ok());
  }
  state.SetItemsProcessed(state.iterations());
}

// As CompleteTrial: ends the trials in turn.
void BM_UpdateTrial(benchmark::State& state) {
  Store& store = *TheStore();
  for (auto _ : state) {
    const int64_t turn = store.next++;
    const TrialNumber number{turn % state.range(0) + 1};
    CUBICML_CHECK(store.store
                      ->UpdateTrial(store.study, number,
                                    [turn](v1::Trial* trial) {
                                      trial->set_state(v1::Trial::SUCCEEDED);
                                      (*trial->mutable_metrics())["qps"] =
                                          static_cast<double>(turn);
                                      trial->mutable_end_time()->set_seconds(
                                          turn);
                                      return absl::OkStatus();
                                    },
                                    {})
                      .ok());
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_RenewLease(benchmark::State& state) {
  Store& store = *TheStore();
  for (auto _ : state) {
    const int64_t turn = store.next++;
    const TrialNumber number{turn % state.range(0) + 1};
    CUBICML_CHECK(
        store.store
            ->UpdateTrial(store.study, number,
                          [turn](v1::Trial* trial) {
                            trial->mutable_lease_expire_time()->set_nanos(
                                static_cast<int32_t>(turn % 1000) * 1000);
                            return absl::OkStatus();
                          },
                          {})
            .ok());
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_GetTrial(benchmark::State& state) {
  Store& store = *TheStore();
  for (auto _ : state) {
    const TrialNumber number{store.next++ % state.range(0) + 1};
    CUBICML_CHECK(store.store->GetTrial(store.study, number).ok());
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_ScanTrials(benchmark::State& state) {
  Store& store = *TheStore();
  for (auto _ : state) {
    int64_t count = 0;
    CUBICML_CHECK(store.store
                      ->ScanTrials(store.study, ScanOptions(),
                                   [&count](v1::Trial&& trial) {
                                     count += trial.attempt();
                                     return absl::OkStatus();
                                   })
                      .ok());
    benchmark::DoNotOptimize(count);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void Histories(benchmark::internal::Benchmark* bench) {
  bench->Arg(100)->Arg(100'000)->Setup(MakeStore)->Teardown(DropStore);
  bench->UseRealTime();
}
void Producers(benchmark::internal::Benchmark* bench) {
  Histories(bench);
  bench->Threads(1)->Threads(16)->Threads(64);
}

BENCHMARK(BM_CreateTrials)->Apply(Producers);
BENCHMARK(BM_UpdateTrial)->Apply(Producers);
BENCHMARK(BM_RenewLease)->Apply(Producers);
BENCHMARK(BM_GetTrial)->Apply(Producers);
BENCHMARK(BM_ScanTrials)->Apply(Histories)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cubicml

BENCHMARK_MAIN();
