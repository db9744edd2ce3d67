// SPDX-License-Identifier: Apache-2.0

#include "server/core/optimal_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;

// Objectives o0 (maximised), o1 (minimised), o2 (maximised), ...
std::shared_ptr<const StudyDefinition> MakeDefinition(int objectives) {
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  study.clear_objectives();
  for (int i = 0; i < objectives; ++i) {
    v1::Objective& objective = *study.add_objectives();
    objective.mutable_metric()->set_name(absl::StrCat("o", i));
    objective.set_goal(i % 2 == 0 ? v1::MAXIMIZE : v1::MINIMIZE);
  }
  return *StudyDefinition::Parse(study);
}

MeasuredRow MakeRow(int64_t number, std::vector<double> metrics) {
  MeasuredRow row;
  row.number.value = number;
  row.key = absl::StrCat(number);
  row.feasible = true;
  row.metrics = std::move(metrics);
  return row;
}

std::vector<int64_t> Find(const StudyDefinition& definition, const RowLog& rows,
                          size_t limit) {
  std::vector<int64_t> numbers;
  for (const TrialNumber number :
       FindOptimalTrials(definition, rows.Share(), {true}, limit)) {
    numbers.push_back(number.value);
  }
  return numbers;
}

TEST(OptimalTrialsTest, OfOneObjectiveTheBestComeFirstAndTiesByNumber) {
  const auto definition = MakeDefinition(1);
  RowLog rows;
  rows.Append(MakeRow(1, {5.0}));
  rows.Append(MakeRow(2, {7.0}));
  rows.Append(MakeRow(3, {std::nan("")}));
  MeasuredRow infeasible = MakeRow(4, {99.0});
  infeasible.feasible = false;
  rows.Append(infeasible);
  MeasuredRow elsewhere = MakeRow(5, {98.0});
  elsewhere.group = 1;
  rows.Append(elsewhere);
  rows.Append(MakeRow(6, {7.0}));
  EXPECT_THAT(Find(*definition, rows, 10), ElementsAre(2, 6, 1));
  EXPECT_THAT(Find(*definition, rows, 1), ElementsAre(2));
}

MeasuredRow MakeRepeat(int64_t number, double value, const std::string& key,
                       int group = 0) {
  MeasuredRow row = MakeRow(number, {value});
  row.key = key;
  row.group = group;
  return row;
}

TEST(OptimalTrialsTest, AConfigurationIsAsGoodAsItIsOnAverage) {
  const auto definition = MakeDefinition(1);
  RowLog rows;
  rows.Append(MakeRepeat(1, 100.0, "lucky"));
  rows.Append(MakeRepeat(2, 90.0, "steady"));
  rows.Append(MakeRepeat(3, 40.0, "lucky"));
  rows.Append(MakeRepeat(4, 80.0, "lucky", 1));  // of another context
  rows.Append(MakeRepeat(5, 200.0, "fails"));
  rows.Append(MakeRepeat(6, 200.0, "fails"));
  MeasuredRow failed = MakeRepeat(7, 200.0, "fails");
  failed.feasible = false;
  rows.Append(failed);
  const auto find = [&] {
    std::vector<int64_t> numbers;
    for (const TrialNumber number :
         FindOptimalTrials(*definition, rows.Share(), {true, true}, 10)) {
      numbers.push_back(number.value);
    }
    return numbers;
  };
  EXPECT_THAT(find(), ElementsAre(5, 2, 4, 1));
  failed.number.value = 8;
  rows.Append(failed);
  EXPECT_THAT(find(), ElementsAre(2, 4, 1));
  EXPECT_THAT(RankConfigurations(*definition, rows.Share(), 0),
              ElementsAre(1, 0));
}

TEST(OptimalTrialsTest, TheFrontIsWhatNothingDominates) {
  for (const int objectives : {2, 3, 4}) {
    const auto definition = MakeDefinition(objectives);
    Rng rng(static_cast<uint64_t>(objectives));
    RowLog rows;
    constexpr size_t kRows = 400;
    for (size_t i = 0; i < kRows; ++i) {
      std::vector<double> metrics;
      // Few different values, so that there are ties.
      for (int k = 0; k < objectives; ++k) {
        metrics.push_back(static_cast<double>(rng.Below(12)));
      }
      rows.Append(MakeRow(static_cast<int64_t>(i) + 1, metrics));
    }
    const RowLog::Snapshot all = rows.Share();
    std::set<int64_t> expected;
    for (size_t i = 0; i < kRows; ++i) {
      bool dominated = false;
      for (size_t j = 0; j < kRows && !dominated; ++j) {
        bool no_worse = true;
        bool better = false;
        for (size_t k = 0; k < static_cast<size_t>(objectives); ++k) {
          const double sign = k % 2 == 0 ? 1.0 : -1.0;
          const double a = sign * all[j].metrics[k];
          const double b = sign * all[i].metrics[k];
          no_worse = no_worse && a >= b;
          better = better || a > b;
        }
        dominated = no_worse && better;
      }
      if (!dominated) expected.insert(all[i].number.value);
    }
    const std::vector<int64_t> found = Find(*definition, rows, kRows);
    EXPECT_EQ(std::set<int64_t>(found.begin(), found.end()), expected)
        << objectives;
    EXPECT_EQ(found.size(), expected.size());
  }
}

}  // namespace
}  // namespace cubicml
