// SPDX-License-Identifier: Apache-2.0
//
// How good the searchers are, on landscapes whose best point is known.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/kernel_trainer.h"
#include "predictor/knob_distance.h"
#include "predictor/searcher.h"
#include "tests/predictor/constrained_problem.h"
#include "tests/predictor/searcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

constexpr int kSeeds = 5;

double BestFound(const Searcher& searcher, const Landscape& landscape,
                 uint64_t seed) {
  const auto candidates = searcher.Search(landscape.Problem(), 1, Rng(seed));
  EXPECT_THAT(candidates.status(), IsOk());
  if (!candidates.ok() || candidates->empty()) return -1e9;
  return landscape.ScoreOf(candidates->front().point);
}

// What is found, as a share of the way from the mean of the space to its best.
double ShareOfBest(const Searcher& searcher, const Landscape& landscape,
                   double best, uint64_t seed) {
  Rng rng(seed);
  double mean = 0.0;
  constexpr int kSample = 200;
  for (int i = 0; i < kSample; ++i) {
    const auto point = landscape.space().Sample(
        landscape.context(), landscape.space().Free(), 100'000, &rng);
    mean += landscape.ScoreOf(*point) / kSample;
  }
  return (BestFound(searcher, landscape, seed) - mean) / (best - mean);
}

// The ads space of arXiv 2409.04585: 5 * 3^11 * 10 = 8.9 million points.
v1::Study AdsStudy() {
  std::string text = CategoryText("hierarchy", 5);
  for (int i = 0; i < 11; ++i) {
    text += CategoryText(absl::StrCat("sharding", i), 3);
  }
  text += "parameters { name: 'bucket' integer { min: 1 max: 10 } }";
  return StudyFromText(text);
}

// About 20,000 valid points: 1,024 GPUs split in four ways, and more.
v1::Study ParallelStudy() {
  std::string text;
  for (const char* name : {"tp", "pp", "cp", "dp"}) {
    // The baseline has to be valid: all data-parallel.
    const char* usual = name == std::string("dp") ? "1024" : "1";
    absl::StrAppend(&text, "parameters { name: '", name,
                    "' integer { values: [1, 2, 4, 8, 16, 32, 64, 128, 256, ",
                    "512, 1024] scale: SCALE_LOG } default_value { ",
                    "int64_value: ", usual, " } }\n");
  }
  text += CategoryText("schedule", 4) + CategoryText("recompute", 3);
  text += "parameters { name: 'micro' integer { values: [1, 2, 4, 8, 16] } }";
  text += "constraints { expression: 'tp * pp * cp * dp = 1024' }";
  return StudyFromText(text);
}

TEST(ExhaustiveSearcherTest, FindsTheBestOfAll) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(ParallelStudy(), seed, 0.5);
    EXPECT_DOUBLE_EQ(BestFound(*NewExhaustiveSearcher(), landscape, seed),
                     landscape.Best());
  }
}

TEST(ExhaustiveSearcherTest, RefusesMoreThanTenMillionPoints) {
  std::string text;
  for (int i = 0; i < 16; ++i) text += CategoryText(absl::StrCat("k", i), 3);
  const Landscape landscape(StudyFromText(text), 1, 0.5);
  EXPECT_THAT(NewExhaustiveSearcher()->Search(landscape.Problem(), 1, Rng(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ReinforceSearcherTest, ComesNearTheBestWhereConstraintsTieKnobs) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(ParallelStudy(), seed, 0.5);
    EXPECT_GE(
        ShareOfBest(*NewReinforceSearcher(), landscape, landscape.Best(), seed),
        0.95);
  }
}

TEST(ReinforceSearcherTest, ComesWithinOnePercentOfTheBestOfTheAdsSpace) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(AdsStudy(), seed, 0.5);
    EXPECT_GE(BestFound(*NewReinforceSearcher(), landscape, seed),
              0.99 * landscape.BestWithoutConstraints());
  }
}

TEST(LocalSearcherTest, FindsTheBestWhereConstraintsTieKnobs) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(ParallelStudy(), seed, 0.5);
    EXPECT_GE(
        ShareOfBest(*NewLocalSearcher(), landscape, landscape.Best(), seed),
        0.98);
  }
}

TEST(LocalSearcherTest, ComesWithinOnePercentOfTheBestOfTheAdsSpace) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(AdsStudy(), seed, 0.5);
    EXPECT_GE(BestFound(*NewLocalSearcher(), landscape, seed),
              0.99 * landscape.BestWithoutConstraints());
  }
}

TEST(DefaultSearcherTest, IsExhaustiveInASmallSpace) {
  const Landscape landscape(ParallelStudy(), 1, 0.5);
  EXPECT_DOUBLE_EQ(BestFound(*NewDefaultSearcher(), landscape, 1),
                   landscape.Best());
}

TEST(DefaultSearcherTest, ComesWithinOnePercentOfTheBestOfTheAdsSpace) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Landscape landscape(AdsStudy(), seed, 1.0);
    EXPECT_GE(BestFound(*NewDefaultSearcher(), landscape, seed),
              0.99 * landscape.BestWithoutConstraints());
  }
}

TEST(DefaultSearcherTest, CopesWithRangesOfManyValues) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&text, "parameters { name: 'r", i,
                    "' integer { min: 1 max: 200 } }\n");
  }
  const Landscape landscape(StudyFromText(text), 3, 0.0);
  EXPECT_GE(BestFound(*NewDefaultSearcher(), landscape, 3),
            landscape.BestWithoutConstraints() - 0.01);
}

TEST(ModelSearcherTest, AvoidsWhatDoesNotWork) {
  Landscape landscape(AdsStudy(), 2, 0.5);
  // What is best would not work.
  landscape.feasible = [](const Point& point) {
    return point.front() > 0.0 ? 0.01 : 1.0;
  };
  const auto candidates =
      NewDefaultSearcher()->Search(landscape.Problem(), 4, Rng(1));
  ASSERT_THAT(candidates.status(), IsOk());
  for (const Candidate& candidate : *candidates) {
    EXPECT_EQ(candidate.point.front(), 0.0);
  }
}

struct Outcome {
  double regret = 0.0;  // mean
  int broke = 0;        // of the trials that a model proposed
};

// Over jobs that no benchmark shows and no choice was made by.
constexpr uint64_t kFirstJob = 601;
constexpr uint64_t kJobs = 2;
constexpr int kTrialsOfAJob = 24;

Outcome SearchJobs(const Trainer* trainer) {
  const auto searcher = NewDefaultSearcher();
  Outcome outcome;
  for (uint64_t seed = kFirstJob; seed < kFirstJob + kJobs; ++seed) {
    const ConstrainedProblem problem =
        MakeConstrainedProblem(ConstraintKind::kSmooth, seed);
    const auto trials =
        SearchConstrained(problem, trainer, *searcher, seed, kTrialsOfAJob);
    outcome.regret += trials.back().regret / kJobs;
    for (const ConstrainedTrial& trial : trials) {
      outcome.broke += trial.modelled && !trial.kept ? 1 : 0;
    }
  }
  return outcome;
}

// A loss that depends on two knobs of eight teaches what breaks its bound: a
// model that takes all knobs for relevant tries the same two values again and
// again with others changed.
TEST(ModelSearcherTest, LearnsWhatBreaksABound) {
  const Outcome learnt = SearchJobs(NewKernelTrainer().get());
  const Outcome dense = SearchJobs(NewDenseTrainer().get());
  const Outcome random = SearchJobs(nullptr);
  // 6.9 percent; 14.1 dense, and 47.3 at random (mean of ten of each job).
  EXPECT_LT(learnt.regret, 0.5 * random.regret);
  EXPECT_LT(learnt.regret, 0.75 * dense.regret);
  // 22 of 32, and 24 dense.
  EXPECT_LE(learnt.broke, dense.broke);
}

TEST(ModelSearcherTest, KeepsTheTrialsOfABatchApart) {
  const Landscape landscape(ParallelStudy(), 4, 0.5);
  SearchProblem problem = landscape.Problem();
  Rng rng(1);
  for (int i = 0; i < 5; ++i) {
    const Point point = *landscape.space().Sample(problem.context,
                                                  problem.fixed, 100'000, &rng);
    problem.observations.push_back({point, true, landscape.ScoreOf(point)});
  }
  const auto batch = NewExhaustiveSearcher()->Search(problem, 8, Rng(1));
  ASSERT_THAT(batch.status(), IsOk());
  const auto top = NewExhaustiveSearcher()->Search(problem, 1, Rng(1));
  ASSERT_THAT(top.status(), IsOk());
  // The first is the best, the others are not its closest neighbours.
  EXPECT_EQ(batch->front().point, top->front().point);
  const KnobDistance distance(landscape.space());
  double nearest = std::numeric_limits<double>::max();
  for (size_t i = 0; i < batch->size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      nearest = std::min(nearest, static_cast<double>(distance.Squared(
                                      distance.Locate((*batch)[i].point),
                                      distance.Locate((*batch)[j].point))));
    }
  }
  EXPECT_GT(nearest, 0.1);
}

TEST(ModelSearcherTest, LooksElsewhereThanWhereTrialsAreRunning) {
  const Landscape landscape(ParallelStudy(), 4, 0.5);
  SearchProblem problem = landscape.Problem();
  const auto first = NewExhaustiveSearcher()->Search(problem, 1, Rng(1));
  ASSERT_THAT(first.status(), IsOk());
  problem.pending.push_back(first->front().point);
  problem.taken.insert(landscape.space().PointKey(first->front().point));
  const auto second = NewExhaustiveSearcher()->Search(problem, 1, Rng(1));
  ASSERT_THAT(second.status(), IsOk());
  const KnobDistance distance(landscape.space());
  EXPECT_GT(distance.Squared(distance.Locate(first->front().point),
                             distance.Locate(second->front().point)),
            0.1F);
}

// Mean over the space of the distance to the nearest point of a design.
double Coverage(const Searcher& searcher, const Landscape& landscape,
                size_t count, uint64_t seed) {
  SearchProblem problem = landscape.Problem();
  problem.predictor = nullptr;
  const auto design = searcher.Search(problem, count, Rng(seed));
  EXPECT_THAT(design.status(), IsOk());
  const KnobDistance distance(landscape.space());
  std::vector<KnobDistance::Position> positions;
  for (const Candidate& candidate : *design) {
    positions.push_back(distance.Locate(candidate.point));
  }
  Rng rng(99);
  double sum = 0.0;
  constexpr int kProbes = 500;
  for (int i = 0; i < kProbes; ++i) {
    const auto probe = distance.Locate(*landscape.space().Sample(
        problem.context, problem.fixed, 100'000, &rng));
    float nearest = std::numeric_limits<float>::max();
    for (const auto& position : positions) {
      nearest = std::min(nearest, distance.Squared(probe, position));
    }
    sum += std::sqrt(static_cast<double>(nearest)) / kProbes;
  }
  return sum;
}

TEST(SpaceFillingSearcherTest, CoversTheSpaceBetterThanChance) {
  for (const v1::Study& study : {ParallelStudy(), AdsStudy()}) {
    const Landscape landscape(study, 1, 0.0);
    double design = 0.0;
    double chance = 0.0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      design += Coverage(*NewSpaceFillingSearcher(), landscape, 12, seed);
      chance += Coverage(*NewRandomSearcher(), landscape, 12, seed);
    }
    EXPECT_LT(design, chance);
  }
}

TEST(SpaceFillingSearcherTest, StaysAwayFromWhatIsKnown) {
  const Landscape landscape(ParallelStudy(), 1, 0.0);
  SearchProblem problem = landscape.Problem();
  const auto first = NewSpaceFillingSearcher()->Search(problem, 6, Rng(1));
  ASSERT_THAT(first.status(), IsOk());
  const KnobDistance distance(landscape.space());
  for (size_t i = 0; i < first->size(); ++i) {
    const Point& point = (*first)[i].point;
    problem.taken.insert(landscape.space().PointKey(point));
    if (i % 2 == 0) {
      problem.observations.push_back({point, true, 1.0});
    } else {
      problem.pending.push_back(point);
    }
  }
  const auto next = NewSpaceFillingSearcher()->Search(problem, 1, Rng(2));
  ASSERT_THAT(next.status(), IsOk());
  for (const Candidate& known : *first) {
    EXPECT_GT(distance.Squared(distance.Locate(known.point),
                               distance.Locate(next->front().point)),
              0.5F);
  }
}

}  // namespace
}  // namespace cubicml
