// SPDX-License-Identifier: Apache-2.0

#include "tests/predictor/trainer_battery.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "predictor/metric_bound.h"
#include "predictor/predictor.h"
#include "predictor/quality.h"
#include "tests/support/status_matchers.h"

namespace cubicml {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TrainerBattery);

Dataset MakeSynthetic(const SyntheticOptions& options) {
  constexpr size_t kColumns = 4;
  Rng rng(options.seed);
  Dataset dataset;
  dataset.metrics = {{"qps", true, true}, {"memory", false, true}};
  dataset.features.rows = options.rows;
  dataset.features.columns = kColumns;
  for (size_t i = 0; i < options.rows; ++i) {
    double x[kColumns];
    for (double& value : x) {
      value = static_cast<double>(rng.Below(9)) / 4.0 - 1.0;
      dataset.features.values.push_back(static_cast<float>(value));
    }
    DatasetRow row;
    row.group =
        static_cast<int>(rng.Below(static_cast<uint64_t>(options.groups)));
    row.feasible = x[2] < 0.7;
    const double level = 3.0 + static_cast<double>(row.group);
    const double shape =
        options.product ? x[0] * x[1] : x[0] - 1.5 * x[1] * x[1];
    const double memory = 40.0 + 10.0 * x[2];
    if (row.feasible) {
      row.metrics = {std::exp(level + shape + options.noise * rng.Normal()),
                     memory};
    }
    dataset.rows.push_back(std::move(row));
  }
  return dataset;
}

Dataset Filter(const Dataset& dataset,
               const std::function<bool(const DatasetRow&)>& keep) {
  Dataset kept;
  kept.metrics = dataset.metrics;
  kept.features.columns = dataset.features.columns;
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    if (!keep(dataset.rows[i])) continue;
    const float* row = dataset.features.row(i);
    kept.features.values.insert(kept.features.values.end(), row,
                                row + dataset.features.columns);
    ++kept.features.rows;
    kept.rows.push_back(dataset.rows[i]);
  }
  return kept;
}

namespace {

double Tau(const Predictor& model, const Dataset& test) {
  const auto forecasts = model.Score(test.features);
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<int> groups;
  for (size_t i = 0; i < test.rows.size(); ++i) {
    if (!test.rows[i].feasible) continue;
    predicted.push_back((*forecasts)[i].score);
    const double y = test.rows[i].metrics[0];
    measured.push_back(test.metrics[0].maximize ? y : -y);
    groups.push_back(test.rows[i].group);
  }
  return KendallTau(predicted, measured, groups).value_or(0.0);
}

TEST_P(TrainerBattery, TheSameSeedGivesTheSameBytes) {
  const Dataset dataset = MakeSynthetic({.groups = 2});
  const auto first = trainer()->Train(dataset, Rng(7), {});
  const auto second = trainer()->Train(dataset, Rng(7), {});
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*first)->Serialize(), (*second)->Serialize());
}

TEST_P(TrainerBattery, OrdersRowsThatItHasNotSeen) {
  const auto model = trainer()->Train(MakeSynthetic({.groups = 2}), Rng(1), {});
  ASSERT_THAT(model, IsOk());
  const Dataset test = MakeSynthetic({.rows = 400, .groups = 2, .seed = 2});
  EXPECT_GT(Tau(**model, test), GetParam().smooth_tau);
  EXPECT_GT((*model)->quality().kendall_tau(), GetParam().smooth_tau - 0.15);
  EXPECT_EQ((*model)->quality().rows(), 60);
}

TEST_P(TrainerBattery, LearnsAProductWhereItsKindCan) {
  if (!GetParam().learns_products) GTEST_SKIP() << "additive";
  const auto model = trainer()->Train(
      MakeSynthetic({.rows = 150, .product = true}), Rng(1), {});
  ASSERT_THAT(model, IsOk());
  const Dataset test = MakeSynthetic({.rows = 400, .product = true, .seed = 2});
  EXPECT_GT(Tau(**model, test), 0.6);
}

TEST_P(TrainerBattery, AMinimisedObjectiveScoresHigherWhereItIsLower) {
  Dataset dataset = MakeSynthetic({});
  Dataset test = MakeSynthetic({.rows = 400, .seed = 2});
  for (Dataset* data : {&dataset, &test}) {
    data->metrics[0].maximize = false;
    for (DatasetRow& row : data->rows) {
      if (row.feasible) row.metrics[0] = 1e6 / row.metrics[0];
    }
  }
  const auto model = trainer()->Train(dataset, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  EXPECT_GT(Tau(**model, test), GetParam().smooth_tau);
  const auto forecasts = (*model)->Predict(test.features);
  ASSERT_THAT(forecasts, IsOk());
  for (const Forecast& forecast : *forecasts) {
    EXPECT_LE(forecast.metrics[0].lower90, forecast.metrics[0].mean);
    EXPECT_GE(forecast.metrics[0].upper90, forecast.metrics[0].mean);
    EXPECT_GT(forecast.metrics[0].stddev, 0.0);
  }
}

TEST_P(TrainerBattery, ALoadedModelPredictsTheSameBits) {
  Dataset dataset = MakeSynthetic({.groups = 3});
  dataset.bounds = {{.metric = 1, .max = 42.0}};
  const auto model = trainer()->Train(dataset, Rng(3), {});
  ASSERT_THAT(model, IsOk());
  const std::string bytes = (*model)->Serialize();
  const auto loaded = trainer()->Load(bytes);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ((*loaded)->kind(), (*model)->kind());
  EXPECT_EQ((*loaded)->Serialize(), bytes);
  EXPECT_EQ((*loaded)->quality().SerializeAsString(),
            (*model)->quality().SerializeAsString());
  const auto a = (*model)->Predict(dataset.features);
  const auto b = (*loaded)->Predict(dataset.features);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  for (size_t i = 0; i < a->size(); ++i) {
    EXPECT_EQ((*a)[i].score, (*b)[i].score);
    EXPECT_EQ((*a)[i].score_stddev, (*b)[i].score_stddev);
    EXPECT_EQ((*a)[i].feasible_probability, (*b)[i].feasible_probability);
    for (size_t m = 0; m < 2; ++m) {
      EXPECT_EQ((*a)[i].metrics[m].mean, (*b)[i].metrics[m].mean);
      EXPECT_EQ((*a)[i].metrics[m].lower90, (*b)[i].metrics[m].lower90);
      const MetricBound bound = {.metric = m, .max = 42.0};
      EXPECT_EQ(ProbabilityWithin((*a)[i].metrics, {&bound, 1}),
                ProbabilityWithin((*b)[i].metrics, {&bound, 1}));
      EXPECT_EQ((*a)[i].metrics[m].noiseless_share,
                (*b)[i].metrics[m].noiseless_share);
    }
  }
}

TEST_P(TrainerBattery, DamagedBytesAreDataLoss) {
  const auto model = trainer()->Train(MakeSynthetic({}), Rng(3), {});
  ASSERT_THAT(model, IsOk());
  const std::string bytes = (*model)->Serialize();
  Rng rng(5);
  EXPECT_THAT(trainer()->Load(""), StatusIs(absl::StatusCode::kDataLoss));
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    if (i % 2 == 0) {
      damaged.resize(rng.Below(bytes.size()));
    } else {
      damaged[rng.Below(bytes.size())] ^= static_cast<char>(1 + rng.Below(255));
    }
    EXPECT_THAT(trainer()->Load(damaged),
                StatusIs(absl::StatusCode::kDataLoss));
    std::string noise(rng.Below(300), '\0');
    for (char& c : noise) c = static_cast<char>(rng.Below(256));
    EXPECT_THAT(trainer()->Load(noise), StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_P(TrainerBattery, ARequestedStopIsSeenAtOnce) {
  std::stop_source source;
  source.request_stop();
  EXPECT_THAT(trainer()->Train(MakeSynthetic({}), Rng(1), source.get_token()),
              StatusIs(absl::StatusCode::kCancelled));
}

// Processor time that a thread has used, in milliseconds.
double ProcessorTime(pthread_t thread) {
  clockid_t clock = 0;
  timespec used = {};
  EXPECT_EQ(pthread_getcpuclockid(thread, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return 1e3 * static_cast<double>(used.tv_sec) +
         1e-6 * static_cast<double>(used.tv_nsec);
}

TEST_P(TrainerBattery, AStopEndsATrainingThatRuns) {
  const Dataset dataset = MakeSynthetic({.rows = 20'000});
  std::stop_source source;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::chrono::steady_clock::time_point ended;
  std::atomic<bool> done = false;
  std::jthread training([&] {
    code =
        trainer()->Train(dataset, Rng(1), source.get_token()).status().code();
    ended = std::chrono::steady_clock::now();
    done = true;
    // Until the thread's clock is not looked at any more.
    while (!source.stop_requested()) std::this_thread::yield();
  });
  // It has work for longer than this.
  while (!done && ProcessorTime(training.native_handle()) < 30.0) {
    std::this_thread::yield();
  }
  source.request_stop();
  const auto asked = std::chrono::steady_clock::now();
  training.join();
  EXPECT_TRUE(code == absl::StatusCode::kCancelled ||
              (code == absl::StatusCode::kOk && ended <= asked));
  // Much more than the 50 ms of the contract: the machine may be busy.
  EXPECT_LT(ended - asked, std::chrono::seconds(3));
}

TEST_P(TrainerBattery, RowsThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Dataset dataset = MakeSynthetic({});
    dataset.features.values[17] = bad;
    EXPECT_THAT(trainer()->Train(dataset, Rng(1), {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
    Dataset weighted = MakeSynthetic({});
    weighted.rows[4].weight = static_cast<double>(bad);
    EXPECT_THAT(trainer()->Train(weighted, Rng(1), {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_P(TrainerBattery, FeaturesToPredictAreChecked) {
  const Dataset dataset = MakeSynthetic({});
  const auto model = trainer()->Train(dataset, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  FeatureMatrix narrow{1, 3, {0.0F, 0.0F, 0.0F}};
  EXPECT_THAT((*model)->Score(narrow),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FeatureMatrix bad{1, 4, {0.0F, 0.0F, 0.0F, static_cast<float>(kNan)}};
  EXPECT_THAT((*model)->Predict(bad),
              StatusIs(absl::StatusCode::kInvalidArgument));
  FeatureMatrix none{0, 4, {}};
  const auto empty = (*model)->Score(none);
  ASSERT_THAT(empty, IsOk());
  EXPECT_TRUE(empty->empty());
}

TEST_P(TrainerBattery, TooLittleToLearnFromIsAFailedPrecondition) {
  EXPECT_THAT(trainer()->Train(MakeSynthetic({.rows = 2}), Rng(1), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  Dataset same = MakeSynthetic({.rows = 12});
  for (size_t k = 0; k < same.features.values.size(); ++k) {
    same.features.values[k] = 0.25F;
  }
  EXPECT_THAT(trainer()->Train(same, Rng(1), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const Dataset failures = Filter(
      MakeSynthetic({}), [](const DatasetRow& row) { return !row.feasible; });
  EXPECT_THAT(trainer()->Train(failures, Rng(1), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(TrainerBattery, ThreeRowsAreEnough) {
  const Dataset feasible = Filter(
      MakeSynthetic({}), [](const DatasetRow& row) { return row.feasible; });
  Dataset three = feasible;
  three.rows.resize(3);
  three.features.rows = 3;
  three.features.values.resize(12);
  const auto model = trainer()->Train(three, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  const auto forecasts = (*model)->Predict(feasible.features);
  ASSERT_THAT(forecasts, IsOk());
  for (const Forecast& forecast : *forecasts) {
    EXPECT_TRUE(std::isfinite(forecast.score));
    EXPECT_GT(forecast.score_stddev, 0.0);
  }
}

TEST_P(TrainerBattery, GroupsAreNotComparedWithEachOther) {
  const Dataset dataset = MakeSynthetic({.groups = 3});
  Dataset shifted = dataset;
  for (DatasetRow& row : shifted.rows) {
    if (row.feasible && row.group == 1) row.metrics[0] *= 1000.0;
  }
  const Dataset test = MakeSynthetic({.rows = 300, .groups = 3, .seed = 2});
  const auto a = trainer()->Train(dataset, Rng(1), {});
  const auto b = trainer()->Train(shifted, Rng(1), {});
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  const auto before = (*a)->Score(test.features);
  const auto after = (*b)->Score(test.features);
  std::vector<double> x;
  std::vector<double> y;
  for (size_t i = 0; i < before->size(); ++i) {
    x.push_back((*before)[i].score);
    y.push_back((*after)[i].score);
  }
  // All rows as one group: the whole order is the same, but for rounding.
  EXPECT_GT(*KendallTau(x, y, std::vector<int>(x.size(), 0)), 0.99);
}

TEST_P(TrainerBattery, NinetyPercentIntervalsCoverAboutNinetyPercent) {
  double covered = 0.0;
  double total = 0.0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto model = trainer()->Train(
        MakeSynthetic({.rows = 80, .noise = 0.2, .seed = seed}), Rng(seed), {});
    ASSERT_THAT(model, IsOk());
    EXPECT_GE((*model)->quality().coverage90(), 0.75);
    const Dataset test =
        MakeSynthetic({.rows = 300, .noise = 0.2, .seed = seed + 100});
    const auto forecasts = (*model)->Predict(test.features);
    for (size_t i = 0; i < test.rows.size(); ++i) {
      if (!test.rows[i].feasible) continue;
      const MetricForecast& forecast = (*forecasts)[i].metrics[0];
      const double y = test.rows[i].metrics[0];
      covered += y >= forecast.lower90 && y <= forecast.upper90 ? 1.0 : 0.0;
      total += 1.0;
    }
  }
  EXPECT_GE(covered / total, 0.8);
  EXPECT_LE(covered / total, 0.99);
}

TEST_P(TrainerBattery, ContextsOfOneTrialDoNotMakeItSure) {
  const Dataset dataset = MakeSynthetic({.rows = 60, .noise = 0.3});
  Dataset singles = MakeSynthetic({.rows = 100, .noise = 0.3, .seed = 9});
  Dataset both = dataset;
  for (size_t i = 0; i < singles.rows.size(); ++i) {
    both.rows.push_back(singles.rows[i]);
    both.rows.back().group = 1 + static_cast<int>(i);
  }
  both.features.rows = both.rows.size();
  both.features.values.insert(both.features.values.end(),
                              singles.features.values.begin(),
                              singles.features.values.end());
  const auto model = trainer()->Train(both, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  const Dataset test = MakeSynthetic({.rows = 300, .noise = 0.3, .seed = 101});
  const auto forecasts = (*model)->Predict(test.features);
  ASSERT_THAT(forecasts, IsOk());
  double covered = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < test.rows.size(); ++i) {
    if (!test.rows[i].feasible) continue;
    const MetricForecast& forecast = (*forecasts)[i].metrics[0];
    const double y = test.rows[i].metrics[0];
    covered += y >= forecast.lower90 && y <= forecast.upper90 ? 1.0 : 0.0;
    total += 1.0;
  }
  EXPECT_GE(covered / total, 0.75);
}

TEST_P(TrainerBattery, LearnsWhatFailsAndWhatItCosts) {
  const auto model = trainer()->Train(MakeSynthetic({.rows = 120}), Rng(1), {});
  ASSERT_THAT(model, IsOk());
  EXPECT_GT((*model)->quality().feasibility_auc(), 0.85);
  FeatureMatrix two{2, 4, {0.0F, 0.0F, -0.75F, 0.0F, 0.0F, 0.0F, 1.0F, 0.0F}};
  const auto forecasts = (*model)->Predict(two);
  ASSERT_THAT(forecasts, IsOk());
  EXPECT_GT((*forecasts)[0].feasible_probability, 0.8);
  EXPECT_LT((*forecasts)[1].feasible_probability, 0.4);
  EXPECT_NEAR((*forecasts)[0].metrics[1].mean, 32.5, 1.5);
}

TEST_P(TrainerBattery, MissingConstantAndRepeatedValuesAreNoTrouble) {
  Dataset dataset = MakeSynthetic({.rows = 40});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    DatasetRow& row = dataset.rows[i];
    if (!row.feasible) continue;
    row.metrics[1] = i % 2 == 0 ? 5.0 : kNan;
  }
  // The same configuration many times over.
  for (int i = 0; i < 20; ++i) {
    dataset.rows.push_back(dataset.rows[0]);
    dataset.rows.back().feasible = true;
    dataset.rows.back().metrics = {20.0 + 0.1 * i, kNan};
    const std::vector<float> row(dataset.features.row(0),
                                 dataset.features.row(0) + 4);
    dataset.features.values.insert(dataset.features.values.end(), row.begin(),
                                   row.end());
    ++dataset.features.rows;
  }
  const auto model = trainer()->Train(dataset, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  const auto forecasts = (*model)->Predict(dataset.features);
  ASSERT_THAT(forecasts, IsOk());
  EXPECT_NEAR((*forecasts)[3].metrics[1].mean, 5.0, 1e-9);
  EXPECT_TRUE(std::isfinite((*forecasts)[3].metrics[0].mean));
}

TEST_P(TrainerBattery, FewRowsOfAMetricAreNotTakenForCertain) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {4.0}, {4.0, 4.4}, {-4.0, -4.4}}) {
    Dataset dataset = MakeSynthetic({.rows = 40});
    size_t given = 0;
    double sum = 0.0;
    for (DatasetRow& row : dataset.rows) {
      if (!row.feasible) continue;
      row.metrics[1] = given < values.size() ? values[given] : kNan;
      if (given < values.size()) sum += values[given];
      ++given;
    }
    const auto model = trainer()->Train(dataset, Rng(1), {});
    ASSERT_THAT(model, IsOk());
    const auto forecasts = (*model)->Predict(dataset.features);
    ASSERT_THAT(forecasts, IsOk());
    const MetricForecast& forecast = (*forecasts)[3].metrics[1];
    if (values.empty()) {
      EXPECT_TRUE(std::isnan(forecast.mean));
      continue;
    }
    const double mean = sum / static_cast<double>(values.size());
    EXPECT_NEAR(forecast.mean, mean, 0.01);
    EXPECT_LT(forecast.lower90, mean - 0.3);
    EXPECT_GT(forecast.upper90, mean + 0.3);
    EXPECT_GT(forecast.stddev, 0.3);
  }
}

TEST_P(TrainerBattery, AMeasuredMetricWhoseModelIsNotFiniteIsRefused) {
  Dataset dataset = MakeSynthetic({.rows = 40});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    // Finite, but their squares are not.
    if (dataset.rows[i].feasible) {
      dataset.rows[i].metrics[1] = i % 2 == 0 ? 1e300 : -1e300;
    }
  }
  EXPECT_THAT(trainer()->Train(dataset, Rng(1), {}),
              StatusIs(absl::StatusCode::kInternal));
}

// Mean share, over the rows, of the spread of the second metric that is not
// noise, where that metric has noise and `level` sets its groups apart.
double NoiselessShare(const Trainer& trainer, int groups, double level) {
  Dataset dataset = MakeSynthetic({.rows = 120, .groups = groups});
  Rng rng(11);
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    DatasetRow& row = dataset.rows[i];
    if (!row.feasible) continue;
    const double x = static_cast<double>(dataset.features.row(i)[0]);
    row.metrics[1] = std::exp(x + level * row.group + 0.2 * rng.Normal());
  }
  const auto model = trainer.Train(dataset, Rng(1), {});
  EXPECT_THAT(model.status(), IsOk());
  const auto forecasts = (*model)->Predict(dataset.features);
  double sum = 0.0;
  for (const Forecast& forecast : *forecasts) {
    sum += forecast.metrics[1].noiseless_share;
  }
  return sum / static_cast<double>(forecasts->size());
}

TEST_P(TrainerBattery, NoiseIsToldFromWhatIsNotKnownInSeveralContexts) {
  EXPECT_LT(NoiselessShare(*trainer(), 1, 0.0), 0.6);
  EXPECT_LT(NoiselessShare(*trainer(), 2, 0.0), 0.6);
  // No feature says what the level of a context is.
  EXPECT_GT(NoiselessShare(*trainer(), 2, 1.0), 0.9);
}

TEST_P(TrainerBattery, OneColumnAndObjectivesBelowZeroAreNoTrouble) {
  Rng rng(1);
  Dataset dataset;
  dataset.metrics = {{"gain", true, true}};
  dataset.features.columns = 1;
  for (int i = 0; i < 30; ++i) {
    const double x = 2.0 * rng.Uniform() - 1.0;
    dataset.features.values.push_back(static_cast<float>(x));
    ++dataset.features.rows;
    DatasetRow row;
    row.feasible = true;
    row.metrics = {-x * x + 0.5 * x};
    dataset.rows.push_back(row);
  }
  const auto model = trainer()->Train(dataset, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  EXPECT_GT(Tau(**model, dataset), 0.8);
}

}  // namespace
}  // namespace cubicml
