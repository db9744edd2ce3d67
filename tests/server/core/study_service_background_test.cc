// SPDX-License-Identifier: Apache-2.0
//
// Leases, training, restarts, and many clients at once.

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/linear_trainer.h"
#include "server/core/study_service.h"
#include "server/core/training_loop.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_study_store.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class BackgroundTest : public ::testing::Test {
 protected:
  v1::HeartbeatResponse Beat(const std::string& trial) {
    v1::HeartbeatRequest request;
    request.set_name(trial);
    const auto response = fixture_.service().Heartbeat(request);
    EXPECT_THAT(response, IsOk());
    return response.ok() ? *response : v1::HeartbeatResponse();
  }
  v1::Trial::State StateOf(const std::string& trial) {
    return fixture_.Get(trial)->state();
  }
  int Expire() { return fixture_.service().ExpireLeases().value_or(-1); }

  FakeClock clock_;
  FakeStudyStore store_{&clock_};
  ServiceFixture fixture_{&store_, &clock_};
};

TEST_F(BackgroundTest, ATrialWithoutHeartbeatsExpiresAndIsHandedOutAgain) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial beating = fixture_.SuggestOne("a");
  const v1::Trial silent = fixture_.SuggestOne("a");
  clock_.Advance(absl::Minutes(9));
  EXPECT_FALSE(Beat(beating.name()).should_stop());
  EXPECT_EQ(Expire(), 0);
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(StateOf(beating.name()), v1::Trial::ACTIVE);
  EXPECT_EQ(StateOf(silent.name()), v1::Trial::EXPIRED);
  const v1::Trial again = fixture_.SuggestOne("a");
  EXPECT_EQ(again.suggestion().source(), v1::Trial::REISSUED);
  EXPECT_EQ(again.attempt(), 2);
  // Its holder comes back: someone else has its configuration now.
  EXPECT_TRUE(Beat(silent.name()).should_stop());
  // And yet its result is a measurement.
  const auto late = fixture_.Complete(silent.name(), {{"score", 1.0}});
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(late->state(), v1::Trial::SUCCEEDED);
  EXPECT_TRUE(late->late());
  ASSERT_THAT(fixture_.Complete(again.name(), {{"score", 2.0}}), IsOk());
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  EXPECT_EQ(fixture_.service().GetStudy(get)->progress().succeeded_trials(), 2);
}

TEST_F(BackgroundTest, AHolderThatComesBackInTimeKeepsItsTrial) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Expire(), 1);
  EXPECT_FALSE(Beat(trial.name()).should_stop());
  EXPECT_EQ(StateOf(trial.name()), v1::Trial::ACTIVE);
  EXPECT_NE(fixture_.SuggestOne("a").suggestion().source(),
            v1::Trial::REISSUED);
  // And it may expire, and be handed out, once more.
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Expire(), 2);
  EXPECT_EQ(fixture_.SuggestOne("a").suggestion().source(),
            v1::Trial::REISSUED);
}

TEST_F(BackgroundTest, ALateResultBeforeTheConfigurationIsHandedOutFreesIt) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Expire(), 1);
  ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0}}), IsOk());
  EXPECT_EQ(fixture_.SuggestOne("a").suggestion().source(),
            v1::Trial::INITIAL_DESIGN);
}

TEST_F(BackgroundTest, AStoppingTrialWhoseLeaseLapsesIsCancelledForGood) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  v1::CancelTrialRequest cancel;
  cancel.set_name(trial.name());
  ASSERT_THAT(fixture_.service().CancelTrial(cancel), IsOk());
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(StateOf(trial.name()), v1::Trial::CANCELLED);
  EXPECT_EQ(fixture_.SuggestOne("a").suggestion().source(),
            v1::Trial::INITIAL_DESIGN);
}

TEST_F(BackgroundTest, AJumpOfTheWallClockEndsNoLease) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  clock_.SetNow(clock_.Now() + absl::Hours(24 * 365));
  EXPECT_EQ(Expire(), 0);
  clock_.SetNow(clock_.Now() - absl::Hours(24 * 730));
  clock_.Advance(absl::Minutes(11));
  EXPECT_EQ(Expire(), 1);
  EXPECT_EQ(StateOf(trial.name()), v1::Trial::EXPIRED);
}

TEST_F(BackgroundTest, AfterARestartEveryHolderHasALeaseToComeBack) {
  fixture_.Create("a", PlainStudy());
  const v1::Trial trial = fixture_.SuggestOne("a");
  // The service was away for a day.
  clock_.Advance(absl::Hours(24));
  fixture_.Restart();
  EXPECT_EQ(Expire(), 0);
  clock_.Advance(absl::Minutes(9));
  EXPECT_EQ(Expire(), 0);
  EXPECT_FALSE(Beat(trial.name()).should_stop());
  clock_.Advance(absl::Minutes(9));
  EXPECT_EQ(Expire(), 0);
  clock_.Advance(absl::Minutes(2));
  EXPECT_EQ(Expire(), 1);
}

TEST_F(BackgroundTest, ModelsAreTrainedWhenEnoughIsNew) {
  fixture_.Create("a", PlainStudy());
  EXPECT_EQ(fixture_.Train(), 0);
  for (int i = 0; i < 4; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * i}}), IsOk());
  }
  EXPECT_EQ(fixture_.Train(), 1);
  EXPECT_EQ(fixture_.Train(), 0);
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  const v1::SurrogateQuality quality =
      fixture_.service().GetStudy(get)->progress().surrogate();
  EXPECT_EQ(quality.model_version(), 1);
  EXPECT_EQ(quality.rows(), 4);
  fixture_.Restart();
  EXPECT_THAT(fixture_.service().GetStudy(get)->progress().surrogate(),
              EqualsProto(quality));
  EXPECT_EQ(fixture_.Train(), 0);
}

TEST_F(BackgroundTest, OfFewMeasurementsEachIsLearnt) {
  fixture_.Create("a", PlainStudy());
  for (int i = 1; i <= 100; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * i}}), IsOk());
    EXPECT_EQ(fixture_.Train(), i < 3 ? 0 : 1) << i;
  }
}

// Counts how often it trains, and does something else meanwhile.
class WatchedTrainer final : public Trainer {
 public:
  explicit WatchedTrainer(std::function<void(const Dataset&)> meanwhile)
      : meanwhile_(std::move(meanwhile)) {}
  absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset& dataset, Rng rng, std::stop_token stop) const override {
    ++trained_;
    meanwhile_(dataset);
    return trainer_->Train(dataset, rng, std::move(stop));
  }
  absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view checkpoint) const override {
    return trainer_->Load(checkpoint);
  }
  int trained() const { return trained_; }

 private:
  const std::function<void(const Dataset&)> meanwhile_;
  const std::unique_ptr<Trainer> trainer_ = NewLinearTrainer();
  mutable std::atomic<int> trained_{0};
};

// A model with these held-out figures.
class FixedPredictor final : public Predictor {
 public:
  explicit FixedPredictor(double kendall_tau) {
    quality_.set_kendall_tau(kendall_tau);
  }
  absl::string_view kind() const override { return "fixed"; }
  absl::StatusOr<std::vector<Forecast>> Predict(
      const FeatureMatrix& features) const override {
    return std::vector<Forecast>(features.rows);
  }
  absl::StatusOr<std::vector<Forecast>> Score(
      const FeatureMatrix& features, std::span<const size_t>) const override {
    return std::vector<Forecast>(features.rows);
  }
  const v1::SurrogateQuality& quality() const override { return quality_; }
  std::string Serialize() const override { return ""; }

 private:
  v1::SurrogateQuality quality_;
};

class FixedTrainer final : public Trainer {
 public:
  absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset&, Rng, std::stop_token) const override {
    return std::make_unique<FixedPredictor>(-0.25);
  }
  absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view) const override {
    return absl::DataLossError("none was stored");
  }
};

TEST_F(BackgroundTest, AModelThatRanksWorseThanChanceIsNewsAndNoError) {
  const FixedTrainer trainer;
  StudyServiceOptions options;
  options.store = &store_;
  options.trainer = &trainer;
  options.clock = &clock_;
  fixture_.Create("a", PlainStudy());
  for (int i = 0; i < 20; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * i}}), IsOk());
  }
  const auto service = StudyService::Create(options);
  ASSERT_THAT(service, IsOk());
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  ASSERT_THAT((*service)->GetStudy(get), IsOk());
  std::vector<std::string> log;
  SetLogSink([&](LogLevel, absl::string_view line) { log.emplace_back(line); });
  EXPECT_EQ((*service)->TrainPendingStudies({}), 0);
  SetLogSink(nullptr);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], AllOf(HasSubstr("level=info"), HasSubstr("is not used"),
                            HasSubstr("kendall_tau = -0.25"),
                            Not(HasSubstr("INTERNAL"))));
}

TEST_F(BackgroundTest, NothingIsTrainedTwiceBecauseTheStoreRefusesIt) {
  fixture_.Create("a", PlainStudy());
  for (int i = 0; i < 4; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * i}}), IsOk());
  }
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  WatchedTrainer trainer([&](const Dataset&) { store_.SetWriteError(full); });
  StudyServiceOptions options;
  options.store = &store_;
  options.trainer = &trainer;
  options.clock = &clock_;
  const auto service = StudyService::Create(options);
  ASSERT_THAT(service, IsOk());
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  ASSERT_THAT((*service)->GetStudy(get), IsOk());
  store_.SetWriteError(full);
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 0);
  EXPECT_EQ(trainer.trained(), 0);
  // Now the disk is full only when the model is there.
  store_.SetWriteError(absl::OkStatus());
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 0);
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 0);
  store_.SetWriteError(absl::OkStatus());
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 1);
  EXPECT_EQ(trainer.trained(), 1);
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 0);
  EXPECT_EQ((*service)->GetStudy(get)->progress().surrogate().rows(), 4);
}

TEST_F(BackgroundTest, AModelIsToldOfTheBoundsOfAllContexts) {
  v1::Study study = BoundedStudy();
  study.clear_constraints();  // the baseline is one in any context
  fixture_.Create("a", study);
  double loss = 2.0;  // of the first trial of a context, its baseline
  for (const int64_t gpus : {8, 8, 4, 4}) {
    v1::SuggestTrialsRequest request = fixture_.MakeRequest("a");
    (*request.mutable_context())["gpus"] = IntegerValue(gpus);
    const auto suggested = fixture_.Suggest(request);
    ASSERT_THAT(suggested, IsOk());
    ASSERT_EQ(suggested->trials_size(), 1);
    ASSERT_THAT(
        fixture_.Complete(suggested->trials(0).name(),
                          {{"qps", loss}, {"loss", loss}, {"memory", 50.0}}),
        IsOk());
    loss += 1.0;
  }
  std::vector<MetricBound> bounds;
  WatchedTrainer trainer(
      [&](const Dataset& dataset) { bounds = dataset.bounds; });
  StudyServiceOptions options;
  options.store = &store_;
  options.trainer = &trainer;
  options.clock = &clock_;
  const auto service = StudyService::Create(options);
  ASSERT_THAT(service, IsOk());
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  ASSERT_THAT((*service)->GetStudy(get), IsOk());
  EXPECT_EQ((*service)->TrainPendingStudies(std::stop_token()), 1);
  const auto is = [](size_t metric, double max) {
    return AllOf(::testing::Field("metric", &MetricBound::metric, metric),
                 ::testing::Field("max", &MetricBound::max, DoubleEq(max)));
  };
  // 1.1 times the loss of each baseline, and the memory of every context.
  EXPECT_THAT(bounds, UnorderedElementsAre(is(1, 2.2), is(1, 4.4), is(2, 76.0),
                                           is(2, 76.0)));
}

TEST_F(BackgroundTest, MetricsInAnotherOrderNeedAnotherModel) {
  v1::UpdateStudyRequest update;
  *update.mutable_study() = fixture_.Create("a", TrainingStudy());
  for (int i = 0; i < 4; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(
        fixture_.Complete(trial.name(),
                          {{"qps", 1.0 * i}, {"loss", 1.0}, {"memory", 50.0}}),
        IsOk());
  }
  ASSERT_EQ(fixture_.Train(), 1);
  v1::PredictRequest predict;
  predict.set_parent("studies/a");
  EXPECT_THAT(fixture_.service().Predict(predict), IsOk());
  update.mutable_study()->mutable_metrics()->SwapElements(0, 1);
  update.mutable_update_mask()->add_paths("metrics");
  ASSERT_THAT(fixture_.service().UpdateStudy(update), IsOk());
  EXPECT_THAT(fixture_.service().Predict(predict),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(fixture_.Train(), 1);
  EXPECT_THAT(fixture_.service().Predict(predict), IsOk());
}

TEST_F(BackgroundTest, ACorruptModelIsTrainedAnewUnderAnotherVersion) {
  fixture_.Create("a", PlainStudy());
  for (int i = 0; i < 4; ++i) {
    const v1::Trial trial = fixture_.SuggestOne("a");
    ASSERT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * i}}), IsOk());
  }
  StoredModel broken;
  broken.quality.set_model_version(5);
  broken.checkpoint = "cubicml-model 1 rubbish that is not a model at all";
  ASSERT_THAT(store_.CreateModel(store_.GetStudy("studies/a")->id, broken),
              IsOk());
  fixture_.Restart();
  fixture_.SuggestOne("a");
  EXPECT_EQ(fixture_.Train(), 1);
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  EXPECT_EQ(
      fixture_.service().GetStudy(get)->progress().surrogate().model_version(),
      6);
}

TEST_F(BackgroundTest, AnswersToRequestsAreForgottenAfterADay) {
  v1::CreateStudyRequest request;
  request.set_study_id("a");
  *request.mutable_study() = PlainStudy();
  request.set_request_id("once");
  ASSERT_THAT(fixture_.service().CreateStudy(request), IsOk());
  EXPECT_THAT(fixture_.service().ForgetOldRequests(), IsOkAndHolds(0));
  clock_.Advance(absl::Hours(24));
  EXPECT_THAT(fixture_.service().ForgetOldRequests(), IsOkAndHolds(0));
  // Now it is old, but it is not yet time to look.
  clock_.Advance(absl::Minutes(59));
  EXPECT_THAT(fixture_.service().ForgetOldRequests(), IsOkAndHolds(0));
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(fixture_.service().ForgetOldRequests(), IsOkAndHolds(1));
}

TEST_F(BackgroundTest, TheLoopForgetsRequestsWithoutBeingAsked) {
  const RequestKey key{"old", "CreateStudy", 1};
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  ASSERT_THAT(store_.CreateStudy(study, key), IsOk());
  clock_.Advance(absl::Hours(25));
  TrainingLoop loop(&fixture_.service(), {.interval = absl::Milliseconds(1)});
  // Once it is forgotten, the id may be another call's.
  EXPECT_TRUE(WaitUntil(absl::Seconds(30), [&] {
    return store_.FindCreatedTrials({"old", "SuggestTrials", 2}).ok();
  }));
}

TEST_F(BackgroundTest, ManyClientsNeverGetTheSameConfiguration) {
  v1::Study study = PlainStudy();
  study.mutable_parameters(0)->mutable_integer()->set_max(63);
  fixture_.Create("a", study);
  const v1::SuggestTrialsRequest request = fixture_.MakeRequest("a");
  constexpr int kThreads = 8;
  constexpr int kRounds = 25;
  Mutex mu;
  std::set<std::string> names;
  std::set<std::string> configurations;
  std::atomic<bool> done{false};
  std::thread trainer([&] {
    while (!done) {
      fixture_.Train();
      EXPECT_THAT(fixture_.service().ExpireLeases(), IsOk());
    }
  });
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto response = fixture_.Suggest(request);
        ASSERT_THAT(response, IsOk());
        ASSERT_EQ(response->trials_size(), 1) << response->DebugString();
        const v1::Trial& trial = response->trials(0);
        {
          MutexLock lock(&mu);
          EXPECT_TRUE(names.insert(trial.name()).second);
          const std::string key =
              absl::StrCat(trial.parameters().at("x").int64_value(), ",",
                           trial.parameters().at("y").int64_value());
          EXPECT_TRUE(configurations.insert(key).second) << key;
        }
        EXPECT_THAT(fixture_.Complete(trial.name(), {{"score", 1.0 * t + i}}),
                    IsOk());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  done = true;
  trainer.join();
  v1::GetStudyRequest get;
  get.set_name("studies/a");
  const v1::StudyProgress progress =
      fixture_.service().GetStudy(get)->progress();
  EXPECT_EQ(progress.succeeded_trials(), kThreads * kRounds);
  EXPECT_EQ(progress.active_trials(), 0);
  fixture_.Restart();
  EXPECT_EQ(fixture_.service().GetStudy(get)->progress().succeeded_trials(),
            kThreads * kRounds);
}

TEST_F(BackgroundTest, TheTrainingLoopTrainsWhenResultsComeAndStops) {
  fixture_.Create("a", PlainStudy());
  class Trained final : public ServiceObserver {
   public:
    void OnModelTrained(absl::string_view,
                        const v1::SurrogateQuality&) override {
      MutexLock lock(&mu);
      ++models;
      changed.NotifyAll();
    }
    Mutex mu;
    CondVar changed;
    int models ABSL_GUARDED_BY(mu) = 0;
  };
  Trained observer;
  const std::unique_ptr<Trainer> trainer = NewLinearTrainer();
  StudyServiceOptions options;
  options.store = &store_;
  options.trainer = trainer.get();
  options.clock = &clock_;
  options.observer = &observer;
  const auto service = StudyService::Create(options);
  ASSERT_THAT(service, IsOk());
  TrainingLoop loop(service->get(), {.interval = absl::Hours(1)});
  for (int i = 0; i < 4; ++i) {
    v1::SuggestTrialsRequest request;
    request.set_parent("studies/a");
    const auto response = (*service)->SuggestTrials(
        request, clock_.Elapsed() + absl::Seconds(60));
    ASSERT_THAT(response, IsOk());
    v1::CompleteTrialRequest complete;
    complete.set_name(response->trials(0).name());
    complete.set_state(v1::Trial::SUCCEEDED);
    (*complete.mutable_metrics())["score"] = i;
    ASSERT_THAT((*service)->CompleteTrial(complete), IsOk());
  }
  MutexLock lock(&observer.mu);
  while (observer.models == 0) observer.changed.Wait(&observer.mu);
}

TEST_F(BackgroundTest, StudiesThatNobodyUsesLeaveMemoryAndComeBack) {
  const std::unique_ptr<Trainer> trainer = NewLinearTrainer();
  StudyServiceOptions options;
  options.store = &store_;
  options.trainer = trainer.get();
  options.clock = &clock_;
  options.max_cached_studies = 2;
  const auto service = StudyService::Create(options);
  ASSERT_THAT(service, IsOk());
  for (int round = 0; round < 2; ++round) {
    for (const char* id : {"a", "b", "c", "d"}) {
      if (round == 0) fixture_.Create(id, PlainStudy());
      v1::SuggestTrialsRequest request;
      request.set_parent(absl::StrCat("studies/", id));
      const auto response = (*service)->SuggestTrials(
          request, clock_.Elapsed() + absl::Seconds(60));
      ASSERT_THAT(response, IsOk());
      EXPECT_EQ(response->trials(0).name(),
                absl::StrCat("studies/", id, "/trials/", round + 1));
      v1::CompleteTrialRequest complete;
      complete.set_name(response->trials(0).name());
      complete.set_state(v1::Trial::SUCCEEDED);
      (*complete.mutable_metrics())["score"] = round;
      ASSERT_THAT((*service)->CompleteTrial(complete), IsOk());
    }
  }
}

}  // namespace
}  // namespace cubicml
