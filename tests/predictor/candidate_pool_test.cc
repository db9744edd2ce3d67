// SPDX-License-Identifier: Apache-2.0

#include "predictor/candidate_pool.h"

#include <set>
#include <stop_token>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::SizeIs;

class CandidatePoolTest : public ::testing::Test {
 protected:
  CandidatePoolTest()
      : landscape_(StudyFromText(
                       "parameters { name: 'a' integer { min: 1 max: 40 } }"
                       "parameters { name: 'b' integer { min: 1 max: 40 } }"),
                   1, 0.5),
        problem_(landscape_.Problem()),
        all_(*landscape_.space().ValidPoints(problem_.context, problem_.fixed,
                                             10'000)) {}

  std::vector<Candidate> Choose(size_t count, uint64_t seed, int offers = 1) {
    Acquisition acquisition = *Acquisition::Create(problem_);
    const auto scores = *acquisition.Score(all_);
    CandidatePool pool(problem_, count, Rng(seed));
    for (int i = 0; i < offers; ++i) pool.Offer(all_, scores);
    return *pool.SelectBatch(acquisition);
  }

  Landscape landscape_;
  SearchProblem problem_;
  std::vector<Point> all_;
};

TEST_F(CandidatePoolTest, TheBestComesFirst) {
  const std::vector<Candidate> batch = Choose(3, 1);
  ASSERT_THAT(batch, SizeIs(3));
  EXPECT_DOUBLE_EQ(landscape_.ScoreOf(batch[0].point), landscape_.Best());
}

// The short cuts of SelectBatch change nothing: also while nothing is known to
// work, where the first choice changes what all others are worth.
TEST_F(CandidatePoolTest, ChoosesAsIfAllWereScoredAnewForEachChoice) {
  constexpr size_t kCount = 100;  // for so many, the pool keeps them all
  for (const bool any_observed : {false, true}) {
    if (any_observed) {
      problem_.observations.push_back(
          {all_[7], /*feasible=*/true, landscape_.ScoreOf(all_[7])});
    }
    const std::vector<Candidate> batch = Choose(kCount, 1);
    ASSERT_THAT(batch, SizeIs(kCount));
    Acquisition acquisition = *Acquisition::Create(problem_);
    EXPECT_EQ(acquisition.has_best(), any_observed);
    std::vector<PointScore> scores = *acquisition.Score(all_);
    for (const Candidate& candidate : batch) {
      size_t best = 0;
      size_t chosen = 0;
      for (size_t i = 0; i < all_.size(); ++i) {
        acquisition.Rescore(acquisition.distance().Locate(all_[i]), &scores[i]);
        if (scores[i].acquisition > scores[best].acquisition) best = i;
        if (all_[i] == candidate.point) chosen = i;
      }
      ASSERT_DOUBLE_EQ(candidate.acquisition, scores[best].acquisition);
      acquisition.Believe(candidate.point, scores[chosen]);
      scores[chosen].mean = -1e9;  // never again
    }
  }
}

TEST_F(CandidatePoolTest, HoldsEveryPointOnce) {
  std::set<Point> points;
  for (const Candidate& candidate : Choose(50, 1, /*offers=*/3)) {
    EXPECT_TRUE(points.insert(candidate.point).second);
  }
  EXPECT_THAT(points, SizeIs(50));
}

TEST_F(CandidatePoolTest, LeavesOutWhatIsTaken) {
  const Point best = Choose(1, 1)[0].point;
  problem_.taken.insert(landscape_.space().PointKey(best));
  for (const Candidate& candidate : Choose(100, 1)) {
    EXPECT_NE(candidate.point, best);
  }
}

TEST_F(CandidatePoolTest, OrdersEqualOnesByTheSeed) {
  Acquisition acquisition = *Acquisition::Create(problem_);
  const std::vector<PointScore> equal(all_.size());
  std::set<Point> first;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CandidatePool pool(problem_, 1, Rng(seed));
    pool.Offer(all_, equal);
    first.insert(pool.SelectBatch(acquisition)->at(0).point);
  }
  EXPECT_GE(first.size(), 8U);
}

TEST_F(CandidatePoolTest, StopsWhenTheSearchDoes) {
  Acquisition acquisition = *Acquisition::Create(problem_);
  CandidatePool pool(problem_, 10, Rng(1));
  pool.Offer(all_, *acquisition.Score(all_));
  std::stop_source stop;
  problem_.stop = stop.get_token();
  stop.request_stop();
  EXPECT_THAT(pool.SelectBatch(acquisition),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CandidatePoolTest, GivesFewerWhenThereAreFewer) {
  EXPECT_THAT(Choose(5000, 1), SizeIs(1600));
}

}  // namespace
}  // namespace cubicml
