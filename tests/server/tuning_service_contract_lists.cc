// SPDX-License-Identifier: Apache-2.0
//
// The calls that list trials, and Predict.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/core/service_fixture.h"
#include "tests/server/tuning_service_contract.h"
#include "tests/support/proto_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- ListTrials and ExportTrials ----

using Key = std::function<std::optional<double>(const v1::Trial&)>;

// What a list in this order must show of all trials, which come by number: by
// the key, those without one last, then by number.
std::vector<std::string> Sorted(std::vector<v1::Trial> trials, const Key& key,
                                bool descending) {
  if (descending) std::reverse(trials.begin(), trials.end());
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const v1::Trial& a, const v1::Trial& b) {
                     const auto key_a = key(a);
                     const auto key_b = key(b);
                     if (!key_a.has_value() || !key_b.has_value()) {
                       return key_a.has_value() && !key_b.has_value();
                     }
                     return descending ? *key_a > *key_b : *key_a < *key_b;
                   });
  return NamesOf(trials);
}

TEST_P(TuningServiceContractTest, TrialsArePagedInEveryOrder) {
  const std::vector<v1::Trial> all = CreateMixed("a");
  const std::pair<const char*, Key> orders[] = {
      {"number", [](const v1::Trial&) { return 0.0; }},
      {"objective",
       [](const v1::Trial& trial) -> std::optional<double> {
         const auto it = trial.metrics().find("score");
         if (it == trial.metrics().end()) return std::nullopt;
         return it->second;
       }},
      {"create_time",
       [](const v1::Trial& trial) {
         return static_cast<double>(trial.create_time().seconds());
       }},
      {"end_time",
       [](const v1::Trial& trial) -> std::optional<double> {
         if (!trial.has_end_time()) return std::nullopt;
         return static_cast<double>(trial.end_time().seconds());
       }},
  };
  for (const auto& [order, key] : orders) {
    for (const bool descending : {false, true}) {
      const std::string order_by =
          absl::StrCat(order, descending ? " desc" : "");
      const std::vector<std::string> expected = Sorted(all, key, descending);
      for (const int page_size : {1, 2, 5, 11, 12, 13, 1000}) {
        EXPECT_EQ(NamesOf(ListTrials("a", "", order_by, page_size)), expected)
            << order_by << ", " << page_size;
      }
    }
  }
}

TEST_P(TuningServiceContractTest, ListsAndExportsFollowTheFilter) {
  CreateMixed("a");
  const std::pair<const char*, size_t> filters[] = {
      {"", 12},
      {"state = ACTIVE", 3},
      {"state != ACTIVE", 9},
      {"state = INFEASIBLE AND objective > 0", 1},
      {"objective > 2.5", 4},
      {"objective >= 2.5 AND NOT state = INFEASIBLE", 5},
      {"number > 3 AND number <= 6", 3},
      {"reason = CRASH OR reason = OUT_OF_MEMORY", 2},
      {"source = IMPORTED", 7},
      {"client_id = job", 2},
      {"attempt > 1", 0},
      {"late = true", 0},
      {"end_time < 2021-01-01T00:00:00Z", 6},
      {"create_time < 2000-01-01T00:00:00Z", 0},
  };
  for (const auto& [filter, count] : filters) {
    const std::vector<v1::Trial> exported = Export("a", filter);
    EXPECT_THAT(exported, SizeIs(count)) << filter;
    const std::vector<v1::Trial> listed = ListTrials("a", filter, "", 2);
    EXPECT_EQ(NamesOf(listed), NamesOf(exported)) << filter;
    for (size_t i = 0; i < listed.size() && i < exported.size(); ++i) {
      EXPECT_THAT(listed[i], EqualsProto(exported[i]));
      EXPECT_THAT(GetTrial(listed[i].name()), EqualsProto(exported[i]));
    }
  }
}

TEST_P(TuningServiceContractTest, ATokenOfAnotherListIsRefused) {
  CreateMixed("a");
  Create("b");
  v1::ListTrialsRequest request;
  request.set_parent("studies/a");
  request.set_page_size(2);
  request.set_filter("number > 1");
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListTrials(request));
  ASSERT_FALSE(page.next_page_token().empty());
  request.set_page_token(page.next_page_token());
  EXPECT_THAT(service_->ListTrials(request), IsOk());
  request.set_page_size(3);  // may change
  EXPECT_THAT(service_->ListTrials(request), IsOk());
  v1::ListTrialsRequest other = request;
  other.set_filter("number > 2");
  EXPECT_THAT(service_->ListTrials(other), RefusesField("page_token"));
  other = request;
  other.set_order_by("number desc");
  EXPECT_THAT(service_->ListTrials(other), RefusesField("page_token"));
  other = request;
  other.set_parent("studies/b");
  EXPECT_THAT(service_->ListTrials(other), RefusesField("page_token"));
  other = request;
  other.set_page_token(request.page_token() + "A");
  EXPECT_THAT(service_->ListTrials(other), RefusesField("page_token"));
}

TEST_P(TuningServiceContractTest, BadListsOfTrialsAreRefusedByField) {
  Create("a");
  v1::ListTrialsRequest request;
  request.set_parent("studies/a");
  request.set_page_size(-1);
  EXPECT_THAT(service_->ListTrials(request), RefusesField("page_size"));
  request.set_page_size(0);
  request.set_order_by("score");
  EXPECT_THAT(service_->ListTrials(request), RefusesField("order_by"));
  request.set_order_by("");
  for (const std::string bad :
       {"score > 1", "state = NONE", "number >", "number = 'x'", "(number = 1",
        "number = 1 number = 2"}) {
    request.set_filter(bad);
    EXPECT_THAT(service_->ListTrials(request), RefusesField("filter"));
    v1::ExportTrialsRequest all;
    all.set_parent("studies/a");
    all.set_filter(bad);
    EXPECT_THAT(service_->ExportTrials(all), RefusesField("filter"));
  }
}

TEST_P(TuningServiceContractTest, CountsFollowTheStates) {
  CreateMixed("a");
  v1::StudyProgress progress = GetStudy("a").progress();
  EXPECT_EQ(progress.trials(), 12);
  EXPECT_EQ(progress.active_trials(), 3);
  EXPECT_EQ(progress.succeeded_trials(), 7);
  EXPECT_EQ(progress.infeasible_trials(), 2);
  for (const v1::Trial& trial : ListTrials("a", "client_id = job", "", 10)) {
    ASSERT_THAT(Cancel(trial.name()), IsOk());
  }
  progress = GetStudy("a").progress();
  EXPECT_EQ(progress.active_trials(), 3);  // they stop, and are held until then
  EXPECT_EQ(progress.trials(), 12);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListStudies({}));
  ASSERT_EQ(page.studies_size(), 1);
  EXPECT_EQ(page.studies(0).progress().active_trials(), 3);
  EXPECT_EQ(page.studies(0).progress().succeeded_trials(), 7);
}

// ---- Large answers: gRPC takes no more than 4 MiB at once ----

// Some 20 KiB of labels, as many as there may be.
void AddManyLabels(google::protobuf::Map<std::string, std::string>* labels) {
  for (int i = 0; i < 64; ++i) {
    (*labels)[absl::StrCat(std::string(60, 'k'), i)] = std::string(256, 'v');
  }
}

TEST_P(TuningServiceContractTest, PagesThatWouldBeTooLargeEndBefore) {
  Create("a");
  std::vector<v1::Trial> trials;
  for (int i = 0; i < 250; ++i) {
    trials.push_back(Measured(i % 16, i / 16, i));
    AddManyLabels(trials.back().mutable_labels());
  }
  ASSERT_EQ(Import("a", trials).imported(), 250);
  v1::ListTrialsRequest request;
  request.set_parent("studies/a");
  request.set_page_size(1000);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto page, service_->ListTrials(request));
  EXPECT_GT(page.trials_size(), 100);
  EXPECT_LT(page.ByteSizeLong(), size_t{4} << 20);
  EXPECT_THAT(ListTrials("a", "", "objective desc", 1000), SizeIs(250));
  EXPECT_THAT(Export("a"), SizeIs(250));
  // The best have no pages.
  v1::ListOptimalTrialsRequest best;
  best.set_parent("studies/a");
  best.set_page_size(250);
  EXPECT_THAT(service_->ListOptimalTrials(best), RefusesField("page_size"));
  best.set_page_size(100);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto few,
                               service_->ListOptimalTrials(best));
  EXPECT_EQ(few.trials_size(), 100);
}

TEST_P(TuningServiceContractTest, SuggestionsThatWouldBeTooLargeAreNotMade) {
  v1::Study study = PlainStudy();
  // Of each trial some 17 KiB more.
  v1::Parameter& padding = *study.add_parameters();
  padding.set_name("padding");
  padding.set_repeat(64);
  for (const char fill : {'a', 'b'}) {
    padding.mutable_category()->add_values()->set_string_value(
        std::string(256, fill));
  }
  study.mutable_settings()->set_algorithm(v1::RANDOM);
  Create("a", study);
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  request.set_count(100);
  request.set_client_id("job");
  AddManyLabels(request.mutable_labels());
  EXPECT_THAT(service_->SuggestTrials(request), RefusesField("count"));
  EXPECT_THAT(Export("a"), IsEmpty());
  request.set_count(60);
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto most,
                               service_->SuggestTrials(request));
  EXPECT_EQ(most.trials_size(), 60);
  // Those that the client holds are part of the answer.
  request.set_count(100);
  EXPECT_THAT(service_->SuggestTrials(request), RefusesField("count"));
  EXPECT_THAT(Export("a"), SizeIs(60));
}

// ---- ListOptimalTrials and Predict ----

TEST_P(TuningServiceContractTest, TheBestTrialsComeBestFirst) {
  Create("a");
  std::vector<v1::Trial> trials = {Measured(1, 1, 10), Measured(2, 1, 30),
                                   Measured(3, 1, 20), Measured(4, 1, 99),
                                   Measured(5, 1, 30)};
  trials[3].set_state(v1::Trial::INFEASIBLE);
  ASSERT_EQ(Import("a", trials).imported(), 5);
  v1::ListOptimalTrialsRequest request;
  request.set_parent("studies/a");
  CUBICML_ASSERT_OK_AND_ASSIGN(auto best, service_->ListOptimalTrials(request));
  EXPECT_THAT(NamesOf({best.trials().begin(), best.trials().end()}),
              ElementsAre("studies/a/trials/2", "studies/a/trials/5",
                          "studies/a/trials/3", "studies/a/trials/1"));
  EXPECT_THAT(best.trials(0), EqualsProto(GetTrial("studies/a/trials/2")));
  request.set_page_size(1);
  CUBICML_ASSERT_OK_AND_ASSIGN(best, service_->ListOptimalTrials(request));
  EXPECT_THAT(best.trials(), SizeIs(1));
  request.set_page_size(-1);
  EXPECT_THAT(service_->ListOptimalTrials(request), RefusesField("page_size"));
  request.set_page_size(0);
  (*request.mutable_context())["gpus"] = IntegerValue(8);
  EXPECT_THAT(service_->ListOptimalTrials(request),
              RefusesField("context.gpus"));
}

TEST_P(TuningServiceContractTest, OfTwoObjectivesTheFrontIsListed) {
  v1::Study study = PlainStudy();
  v1::Objective& memory = *study.add_objectives();
  memory.mutable_metric()->set_name("memory");
  memory.set_goal(v1::MINIMIZE);
  Create("a", study);
  std::vector<v1::Trial> trials;
  for (const auto& [score, used] : std::vector<std::pair<double, double>>{
           {10, 10}, {20, 30}, {15, 12}, {15, 11}, {5, 11}, {20, 30}}) {
    trials.push_back(Measured(static_cast<int64_t>(trials.size()), 1, score));
    (*trials.back().mutable_metrics())["memory"] = used;
  }
  ASSERT_EQ(Import("a", trials).imported(), 6);
  v1::ListOptimalTrialsRequest request;
  request.set_parent("studies/a");
  CUBICML_ASSERT_OK_AND_ASSIGN(const auto front,
                               service_->ListOptimalTrials(request));
  EXPECT_THAT(NamesOf({front.trials().begin(), front.trials().end()}),
              ElementsAre("studies/a/trials/2", "studies/a/trials/6",
                          "studies/a/trials/4", "studies/a/trials/1"));
  EXPECT_THAT(Complete(Suggest("a")[0].name(), {{"score", 1}}),
              RefusesField("metrics.memory"));
}

TEST_P(TuningServiceContractTest, APredictionNeedsAModelAndAConfiguration) {
  Create("a");
  v1::PredictRequest request;
  request.set_parent("studies/a");
  *request.add_configurations()->mutable_parameters() =
      Measured(1, 1, 0).parameters();
  EXPECT_THAT(
      service_->Predict(request),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("studies/a")));
  *request.add_configurations()->mutable_parameters() =
      Measured(1, 16, 0).parameters();
  EXPECT_THAT(service_->Predict(request),
              RefusesField("configurations[1].parameters.y"));
  (*request.mutable_configurations(1)->mutable_context())["gpus"] =
      IntegerValue(8);
  EXPECT_THAT(service_->Predict(request),
              RefusesField("configurations[1].context.gpus"));
}

}  // namespace
}  // namespace cubicml
