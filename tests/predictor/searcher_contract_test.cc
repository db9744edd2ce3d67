// SPDX-License-Identifier: Apache-2.0
//
// What every searcher promises (predictor/searcher.h), for every searcher.

#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/searcher.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::SizeIs;

struct SearcherCase {
  std::string name;
  std::unique_ptr<Searcher> (*create)();
  bool needs_model;
};

// 2 * 2 * 3 * 5 points, of which the constraint leaves 36; one knob exists in
// half of them only.
constexpr char kSmallStudy[] = R"(
  parameters { name: 'tp' integer { values: [1, 2] } }
  parameters { name: 'mode' category {
      values { string_value: 'a' } values { string_value: 'b' } } }
  parameters { name: 'depth' integer { min: 1 max: 3 } active_if: "mode = 'b'" }
  parameters { name: 'batch' integer { values: [1, 2, 4, 8, 16] scale: SCALE_LOG } }
  constraints { expression: 'tp * batch <= 16' }
)";

class SearcherTest : public ::testing::TestWithParam<SearcherCase> {
 protected:
  SearcherTest() {
    auto space = SearchSpace::Parse(StudyFromText(kSmallStudy));
    CUBICML_CHECK(space.ok());
    space_ = *std::move(space);
    featurizer_ = std::make_unique<Featurizer>(space_);
    // Any function of the features will do.
    predictor_ = std::make_unique<FakePredictor>([this](const float* row) {
      Forecast forecast;
      for (size_t c = 0; c < featurizer_->columns(); ++c) {
        const double weight = std::sin(static_cast<double>(c) + 1.0);
        forecast.score += weight * static_cast<double>(row[c]);
      }
      forecast.score_stddev = 0.1;
      return forecast;
    });
    problem_.space = space_;
    problem_.featurizer = featurizer_.get();
    problem_.predictor = predictor_.get();
    problem_.context = *space_->ParseContext({});
    problem_.fixed = space_->Free();
    valid_ = *space_->ValidPoints(problem_.context, problem_.fixed, 1000);
  }

  std::vector<Candidate> Search(size_t count, uint64_t seed = 1) const {
    auto candidates = searcher_->Search(problem_, count, Rng(seed));
    EXPECT_THAT(candidates.status(), IsOk());
    return candidates.ok() ? *candidates : std::vector<Candidate>();
  }

  // Checks that they are valid, different and not taken. Their keys.
  std::vector<std::string> CheckedKeys(
      const std::vector<Candidate>& candidates) const {
    std::vector<std::string> keys;
    for (const Candidate& candidate : candidates) {
      EXPECT_THAT(
          space_->CheckValid(candidate.point, problem_.context, problem_.fixed),
          IsOk());
      keys.push_back(space_->PointKey(candidate.point));
      EXPECT_FALSE(problem_.taken.contains(keys.back()));
    }
    EXPECT_THAT(std::set<std::string>(keys.begin(), keys.end()),
                SizeIs(keys.size()));
    return keys;
  }

  void Observe(const Point& point, double objective) {
    problem_.observations.push_back({point, true, objective});
    problem_.taken.insert(space_->PointKey(point));
  }

  const std::unique_ptr<Searcher> searcher_ = GetParam().create();
  std::shared_ptr<const SearchSpace> space_;
  std::unique_ptr<Featurizer> featurizer_;
  std::unique_ptr<Predictor> predictor_;
  SearchProblem problem_;
  std::vector<Point> valid_;
};

TEST_P(SearcherTest, FindsAsManyValidDifferentUntakenPointsAsAskedFor) {
  Observe(valid_[0], 1.0);
  Observe(valid_[7], 2.0);
  problem_.pending.push_back(valid_[9]);
  problem_.taken.insert(space_->PointKey(valid_[9]));
  for (const size_t count : {1U, 2U, 8U}) {
    EXPECT_THAT(CheckedKeys(Search(count)), SizeIs(count));
  }
}

TEST_P(SearcherTest, GivesTheSameForTheSameSeed) {
  Observe(valid_[3], 1.0);
  EXPECT_EQ(CheckedKeys(Search(5, 7)), CheckedKeys(Search(5, 7)));
}

TEST_P(SearcherTest, GivesAllThatIsLeftWhenThatIsFewerThanAskedFor) {
  for (size_t i = 0; i + 7 < valid_.size(); ++i) Observe(valid_[i], 1.0);
  EXPECT_THAT(CheckedKeys(Search(100)), SizeIs(7));
}

TEST_P(SearcherTest, GivesNothingWhenEverythingIsTaken) {
  for (const Point& point : valid_) Observe(point, 1.0);
  EXPECT_THAT(Search(3), SizeIs(0));
}

TEST_P(SearcherTest, GivesNothingWhenTheConstraintsLeaveNothing) {
  problem_.fixed[0] = 2.0;   // tp
  problem_.fixed[3] = 16.0;  // batch
  EXPECT_THAT(Search(3), SizeIs(0));
}

TEST_P(SearcherTest, KeepsFixedKnobs) {
  problem_.fixed[0] = 2.0;
  const std::vector<Candidate> candidates = Search(6);
  EXPECT_THAT(CheckedKeys(candidates), SizeIs(6));
  for (const Candidate& candidate : candidates) {
    EXPECT_EQ(candidate.point[0], 2.0);
  }
}

TEST_P(SearcherTest, IsCancelledByAStop) {
  std::stop_source source;
  source.request_stop();
  problem_.stop = source.get_token();
  EXPECT_THAT(searcher_->Search(problem_, 1, Rng(1)),
              StatusIs(absl::StatusCode::kCancelled));
}

// Of 2^24 assignments 276 are valid, and only the last knob tells which.
TEST_P(SearcherTest, IsCancelledWhereValidPointsAreRare) {
  ValueMap context;
  context["sum"].set_int64_value(2);
  const Landscape landscape(
      StudyFromText(
          "parameters { name: 'x' integer { min: 0 max: 1 } repeat: 24 }"
          "context { name: 'sum' type: INTEGER }"
          "constraints { expression: 'vec_sum(x) = sum' }"),
      1, 0.5, context);
  SearchProblem problem = landscape.Problem();
  std::stop_source source;
  problem.stop = source.get_token();
  absl::StatusCode code = absl::StatusCode::kOk;
  std::jthread search(
      [&] { code = searcher_->Search(problem, 1, Rng(1)).status().code(); });
  source.request_stop();
  const auto asked = std::chrono::steady_clock::now();
  search.join();
  EXPECT_EQ(code, absl::StatusCode::kCancelled);
  // Much more than it takes: the machine may be busy.
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(5));
}

TEST_P(SearcherTest, SaysWhenItNeedsAModel) {
  problem_.predictor = nullptr;
  const auto candidates = searcher_->Search(problem_, 1, Rng(1));
  if (GetParam().needs_model) {
    EXPECT_THAT(candidates, StatusIs(absl::StatusCode::kFailedPrecondition));
  } else {
    EXPECT_THAT(candidates, IsOk());
  }
}

TEST_P(SearcherTest, AcceptsObservationsWithoutMeasurement) {
  problem_.observations.push_back({valid_[1], false, std::nan("")});
  problem_.observations.push_back({valid_[2], true, std::nan("")});
  EXPECT_THAT(CheckedKeys(Search(2)), SizeIs(2));
}

INSTANTIATE_TEST_SUITE_P(
    All, SearcherTest,
    ::testing::Values(SearcherCase{"Random", NewRandomSearcher, false},
                      SearcherCase{"SpaceFilling", NewSpaceFillingSearcher,
                                   false},
                      SearcherCase{"Exhaustive", NewExhaustiveSearcher, true},
                      SearcherCase{"Reinforce", NewReinforceSearcher, true},
                      SearcherCase{"Local", NewLocalSearcher, true},
                      SearcherCase{"Default", NewDefaultSearcher, true}),
    [](const auto& suite) { return suite.param.name; });

}  // namespace
}  // namespace cubicml
