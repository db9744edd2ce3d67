// SPDX-License-Identifier: Apache-2.0

#include "predictor/untaken_points.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/predictor/searcher_fixture.h"

namespace cubicml {
namespace {

using ::testing::SizeIs;

TEST(SampleUntakenTest, IsUniformOverWhatIsLeft) {
  const Landscape landscape(
      StudyFromText("parameters { name: 'a' integer { min: 1 max: 10 } }"), 1,
      0.0);
  SearchProblem problem = landscape.Problem();
  problem.taken.insert(landscape.space().PointKey({4.0}));
  Rng rng(1);
  std::map<double, int> counts;
  for (int i = 0; i < 9000; ++i) {
    ++counts[SampleUntaken(problem, 1, &rng)[0][0]];
  }
  EXPECT_THAT(counts, SizeIs(9));
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(SampleUntakenTest, FindsTheLastOnes) {
  const Landscape landscape(
      StudyFromText("parameters { name: 'a' integer { min: 1 max: 1000 } }"), 1,
      0.0);
  SearchProblem problem = landscape.Problem();
  for (int i = 1; i <= 998; ++i) {
    problem.taken.insert(landscape.space().PointKey({static_cast<double>(i)}));
  }
  Rng rng(1);
  EXPECT_THAT(SampleUntaken(problem, 10, &rng), SizeIs(2));
}

TEST(SampleUntakenTest, SamplesWhatIsTooLargeToList) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += CategoryText(absl::StrCat("k", i), 3);
  const Landscape landscape(StudyFromText(text), 1, 0.0);
  const SearchProblem problem = landscape.Problem();
  Rng rng(1);
  const std::vector<Point> points = SampleUntaken(problem, 500, &rng);
  EXPECT_THAT(std::set<Point>(points.begin(), points.end()), SizeIs(500));
}

}  // namespace
}  // namespace cubicml
