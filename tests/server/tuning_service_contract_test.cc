// SPDX-License-Identifier: Apache-2.0
//
// The ways to the service under the contract suite.

#include "tests/server/tuning_service_contract.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cubicml/client/tuning_client.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"
#include "server/core/study_service.h"
#include "server/rpc/metrics.h"
#include "server/rpc/server.h"
#include "storage/sqlite_study_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/temp_dir.h"

namespace cubicml {
namespace {

// Longer than any test, also by a clock that the test moves.
constexpr absl::Duration kNever = absl::Hours(24);

// Null when it cannot be opened; the test fails then.
std::unique_ptr<StudyStore> OpenStore(const TempDir& dir, const Clock* clock) {
  SqliteStudyStore::Options options;
  options.path = dir.PathOf("cubicml.db");
  options.clock = clock;
  options.durable = false;  // what a crash would lose, other tests ask
  absl::StatusOr<std::unique_ptr<SqliteStudyStore>> store =
      SqliteStudyStore::Open(options);
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

// The domain, called directly.
class CoreUnderTest final : public TuningServiceUnderTest {
 public:
  static std::unique_ptr<TuningServiceUnderTest> OnFake() {
    auto made = std::make_unique<CoreUnderTest>();
    made->store_ = std::make_unique<FakeStudyStore>(&made->clock_);
    return Start(std::move(made));
  }
  static std::unique_ptr<TuningServiceUnderTest> OnSqlite() {
    auto made = std::make_unique<CoreUnderTest>();
    made->store_ = OpenStore(made->dir_, &made->clock_);
    return made->store_ == nullptr ? nullptr : Start(std::move(made));
  }

  absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) override {
    return service_->CreateStudy(request);
  }
  absl::StatusOr<v1::Study> GetStudy(
      const v1::GetStudyRequest& request) override {
    return service_->GetStudy(request);
  }
  absl::StatusOr<v1::ListStudiesResponse> ListStudies(
      const v1::ListStudiesRequest& request) override {
    return service_->ListStudies(request);
  }
  absl::StatusOr<v1::Study> UpdateStudy(
      const v1::UpdateStudyRequest& request) override {
    return service_->UpdateStudy(request);
  }
  absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) override {
    return service_->DeleteStudy(request);
  }
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) override {
    return service_->SuggestTrials(request, clock_.Elapsed() + kNever);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request) override {
    return service_->Heartbeat(request);
  }
  absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) override {
    return service_->CompleteTrial(request);
  }
  absl::StatusOr<v1::Trial> CancelTrial(
      const v1::CancelTrialRequest& request) override {
    return service_->CancelTrial(request);
  }
  absl::StatusOr<v1::ImportTrialsResponse> ImportTrials(
      const std::string& parent,
      const std::vector<v1::Trial>& trials) override {
    v1::ImportTrialsResponse response;
    CUBICML_RETURN_IF_ERROR(
        service_->ImportTrials(parent, trials, 0, &response));
    return response;
  }
  absl::StatusOr<v1::Trial> GetTrial(
      const v1::GetTrialRequest& request) override {
    return service_->GetTrial(request);
  }
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request) override {
    return service_->ListTrials(request);
  }
  absl::StatusOr<std::vector<v1::Trial>> ExportTrials(
      const v1::ExportTrialsRequest& request) override {
    std::vector<v1::Trial> trials;
    CUBICML_RETURN_IF_ERROR(
        service_->ExportTrials(request, [&](v1::Trial&& trial) {
          trials.push_back(std::move(trial));
          return absl::OkStatus();
        }));
    return trials;
  }
  absl::StatusOr<v1::ListOptimalTrialsResponse> ListOptimalTrials(
      const v1::ListOptimalTrialsRequest& request) override {
    return service_->ListOptimalTrials(request);
  }
  absl::StatusOr<v1::PredictResponse> Predict(
      const v1::PredictRequest& request) override {
    return service_->Predict(request);
  }
  void PassTime(absl::Duration duration) override {
    clock_.Advance(duration);
    EXPECT_THAT(service_->ExpireLeases(), IsOk());
  }

 private:
  static std::unique_ptr<TuningServiceUnderTest> Start(
      std::unique_ptr<CoreUnderTest> made) {
    StudyServiceOptions options;
    options.store = made->store_.get();
    options.trainer = made->trainer_.get();
    options.clock = &made->clock_;
    options.seed = 11;
    absl::StatusOr<std::unique_ptr<StudyService>> service =
        StudyService::Create(options);
    EXPECT_THAT(service, IsOk());
    if (!service.ok()) return nullptr;
    made->service_ = *std::move(service);
    return made;
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<StudyStore> store_;
  const std::unique_ptr<Trainer> trainer_ = NewLinearTrainer();
  std::unique_ptr<StudyService> service_;
};

// The server owns its clock; this one is the test's.
class BorrowedClock final : public Clock {
 public:
  explicit BorrowedClock(const Clock* clock) : clock_(clock) {}
  absl::Time Now() const override { return clock_->Now(); }
  absl::Duration Elapsed() const override { return clock_->Elapsed(); }

 private:
  const Clock* const clock_;
};

// The C++ client of a server on a socket, with its threads.
class ClientUnderTest final : public TuningServiceUnderTest {
 public:
  static std::unique_ptr<TuningServiceUnderTest> Make() {
    auto made = std::make_unique<ClientUnderTest>();
    ServerParts parts;
    parts.clock = std::make_unique<BorrowedClock>(&made->clock_);
    parts.metrics = std::make_unique<ServerMetrics>();
    parts.store = OpenStore(made->dir_, &made->clock_);
    parts.trainer = NewLinearTrainer();
    if (parts.store == nullptr) return nullptr;
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.metrics_address = "";
    options.worker_threads = 4;
    options.seed = 11;
    options.training_niceness = 0;
    auto server = Server::Start(options, std::move(parts));
    EXPECT_THAT(server, IsOk());
    if (!server.ok()) return nullptr;
    made->server_ = *std::move(server);
    TuningClientOptions client_options;
    client_options.server = absl::StrCat("127.0.0.1:", made->server_->port());
    client_options.timeout = kNever;
    client_options.attempt_timeout = kNever;
    // What clients of other languages take.
    client_options.max_message_bytes = 4 << 20;
    auto client = TuningClient::Create(client_options);
    EXPECT_THAT(client, IsOk());
    if (!client.ok()) return nullptr;
    made->client_ = *std::move(client);
    return made;
  }

  absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) override {
    return client_->CreateStudy(request);
  }
  absl::StatusOr<v1::Study> GetStudy(
      const v1::GetStudyRequest& request) override {
    return client_->GetStudy(request);
  }
  absl::StatusOr<v1::ListStudiesResponse> ListStudies(
      const v1::ListStudiesRequest& request) override {
    return client_->ListStudies(request);
  }
  absl::StatusOr<v1::Study> UpdateStudy(
      const v1::UpdateStudyRequest& request) override {
    return client_->UpdateStudy(request);
  }
  absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) override {
    return client_->DeleteStudy(request);
  }
  absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) override {
    return client_->SuggestTrials(request);
  }
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request) override {
    return client_->Heartbeat(request);
  }
  absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) override {
    return client_->CompleteTrial(request);
  }
  absl::StatusOr<v1::Trial> CancelTrial(
      const v1::CancelTrialRequest& request) override {
    return client_->CancelTrial(request);
  }
  absl::StatusOr<v1::ImportTrialsResponse> ImportTrials(
      const std::string& parent,
      const std::vector<v1::Trial>& trials) override {
    return client_->ImportTrials(parent, trials);
  }
  absl::StatusOr<v1::Trial> GetTrial(
      const v1::GetTrialRequest& request) override {
    return client_->GetTrial(request);
  }
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request) override {
    return client_->ListTrials(request);
  }
  absl::StatusOr<std::vector<v1::Trial>> ExportTrials(
      const v1::ExportTrialsRequest& request) override {
    std::vector<v1::Trial> trials;
    CUBICML_RETURN_IF_ERROR(
        client_->ExportTrials(request, [&](const v1::Trial& trial) {
          trials.push_back(trial);
          return absl::OkStatus();
        }));
    return trials;
  }
  absl::StatusOr<v1::ListOptimalTrialsResponse> ListOptimalTrials(
      const v1::ListOptimalTrialsRequest& request) override {
    return client_->ListOptimalTrials(request);
  }
  absl::StatusOr<v1::PredictResponse> Predict(
      const v1::PredictRequest& request) override {
    return client_->Predict(request);
  }
  void PassTime(absl::Duration duration) override { clock_.Advance(duration); }

 private:
  TempDir dir_;
  // From now on, since deadlines come from the clients' clocks.
  FakeClock clock_{SystemClock().Now()};
  std::unique_ptr<Server> server_;
  std::unique_ptr<TuningClient> client_;
};

INSTANTIATE_TEST_SUITE_P(
    Ways, TuningServiceContractTest,
    ::testing::Values(
        TuningServiceFactory{"CoreOnFake", &CoreUnderTest::OnFake},
        TuningServiceFactory{"CoreOnSqlite", &CoreUnderTest::OnSqlite},
        TuningServiceFactory{"Client", &ClientUnderTest::Make}),
    TuningServiceFactoryName);

}  // namespace
}  // namespace cubicml
