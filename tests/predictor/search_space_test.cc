// SPDX-License-Identifier: Apache-2.0

#include "predictor/search_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/predictor/space_text.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What engineers of large language models tune.
constexpr char kMegatron[] = R"(
    context {name: "gpus" type: INTEGER}
    context {name: "heads" type: INTEGER default_value {int64_value: 32}}
    context {name: "hardware" type: STRING optional: true}
    parameters {name: "tp" integer {values: [1, 2, 4, 8] scale: SCALE_LOG}}
    parameters {name: "pp" integer {values: [1, 2, 4, 8, 16]}}
    parameters {name: "dp" integer {min: 1 max: 64}
                default_value {int64_value: 64}}
    parameters {name: "vpp" integer {values: [1, 2, 4]} active_if: "pp > 1"}
    parameters {name: "micro_batch" integer {values: [1, 2, 4, 8]}}
    parameters {name: "recompute" category {values {string_value: "none"}
                                            values {string_value: "full"}}}
    constraints {expression: "tp * pp * dp = gpus"}
    constraints {expression: "heads % tp = 0"}
    constraints {expression: "512 % (micro_batch * dp) = 0"}
    )";

std::string Gpus(int gpus) {
  return Entry("gpus", absl::StrCat("int64_value: ", gpus));
}

TEST(SearchSpaceTest, KnobsDescribeTheParameters) {
  const auto space = ReadSpace(R"(
      parameters {name: "lr" number {min: 0.001 max: 0.1 scale: SCALE_LOG}}
      parameters {name: "rate" number {min: 0 max: 0.5 step: 0.1}}
      parameters {name: "units" integer {min: -3 max: 4 step: 3}}
      parameters {name: "shard" category {values {string_value: "a"}
                                          values {string_value: "b"}}
                  repeat: 2 active_if: "units > 0"})");
  const std::vector<Knob>& knobs = space->knobs();
  ASSERT_THAT(knobs, SizeIs(5));
  EXPECT_EQ(knobs[0].kind, KnobKind::kNumber);
  EXPECT_TRUE(knobs[0].continuous && knobs[0].log_scale);
  ASSERT_THAT(knobs[0].levels, SizeIs(1025));
  EXPECT_EQ(knobs[0].levels.front(), 0.001);
  EXPECT_EQ(knobs[0].levels.back(), 0.1);
  EXPECT_NEAR(knobs[0].levels[512], 0.01, 1e-12);
  // Exactly the doubles that one writes, no drift.
  EXPECT_THAT(knobs[1].levels, ElementsAre(0.0, 0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_FALSE(knobs[1].continuous);
  EXPECT_THAT(knobs[2].levels, ElementsAre(-3, 0, 3));
  EXPECT_EQ(knobs[3].name, "shard[0]");
  EXPECT_EQ(knobs[4].name, "shard[1]");
  EXPECT_EQ(knobs[4].parameter, 3u);
  EXPECT_EQ(knobs[4].element, 1);
  EXPECT_EQ(knobs[2].element, -1);
  EXPECT_TRUE(knobs[4].conditional);
  EXPECT_THAT(knobs[4].levels, ElementsAre(0, 1));
  EXPECT_THAT(knobs[4].labels, ElementsAre("a", "b"));
}

TEST(SearchSpaceTest, NumbersOnAStepTakeNearlyEqualValuesOntoTheGrid) {
  const auto space =
      ReadSpace(R"(parameters {name: "x" number {min: 0 max: 1 step: 0.1}})");
  const Context context = ReadContext(*space);
  const auto point = space->ParsePoint(
      ReadValues(Entry("x", "double_value: 0.30000000000000004")), context);
  ASSERT_THAT(point, IsOk());
  EXPECT_EQ((*point)[0], 0.3);
  EXPECT_THAT(space->ParsePoint(ReadValues(Entry("x", "double_value: 0.30001")),
                                context),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not on the grid")));
  EXPECT_THAT(
      space->ParsePoint(ReadValues(Entry("x", "int64_value: 1")), context),
      IsOkAndHolds(ElementsAre(1.0)));
}

TEST(SearchSpaceTest, ContextsHaveDefaultsAndCanonicalKeys) {
  const auto space = ReadSpace(kMegatron);
  const Context plain = ReadContext(*space, Gpus(64));
  const Context spelled =
      ReadContext(*space, Gpus(64) + Entry("heads", "int64_value: 32"));
  EXPECT_EQ(plain.key, spelled.key);
  EXPECT_FALSE(plain.fields[2].present);
  std::set<std::string> keys = {plain.key};
  for (const std::string& other :
       {Gpus(32), Gpus(64) + Entry("heads", "int64_value: 16"),
        Gpus(64) + Entry("hardware", "string_value: ''"),
        Gpus(64) + Entry("hardware", "string_value: '~'"),
        Gpus(64) + Entry("hardware", "string_value: 'a,s1:b'")}) {
    EXPECT_TRUE(keys.insert(ReadContext(*space, other).key).second) << other;
  }
  EXPECT_THAT(space->FormatContext(plain), SizeIs(2));
}

TEST(SearchSpaceTest, BadContextsAreRefusedByField) {
  const auto space = ReadSpace(kMegatron);
  const std::map<std::string, std::string> cases = {
      {"", "context.gpus"},
      {Entry("gpus", "string_value: '64'"), "context.gpus"},
      {Entry("gpus", "double_value: 64"), "context.gpus"},
      {Entry("gpus", ""), "context.gpus"},
      {Entry("gpus", "int64_value: 9223372036854775807"), "context.gpus"},
      {Gpus(64) + Entry("nodes", "int64_value: 8"), "context.nodes"},
      {Gpus(64) + Entry("hardware", "bool_value: true"), "context.hardware"},
      {Gpus(64) + Entry("zz", "") + Entry("aa", ""), "context.aa"},
  };
  for (const auto& [text, path] : cases) {
    const auto context = space->ParseContext(ReadValues(text));
    EXPECT_THAT(context, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(FieldNamedBy(context.status()), path);
  }
}

std::string Megatron(int tp, int pp, int dp, const std::string& more) {
  return Entry("tp", absl::StrCat("int64_value: ", tp)) +
         Entry("pp", absl::StrCat("int64_value: ", pp)) +
         Entry("dp", absl::StrCat("int64_value: ", dp)) +
         Entry("micro_batch", "int64_value: 1") + more;
}

TEST(SearchSpaceTest, BadPointsAreRefusedByField) {
  const auto space = ReadSpace(kMegatron);
  const Context context = ReadContext(*space, Gpus(64));
  const std::string none = Entry("recompute", "string_value: 'none'");
  const std::string vpp = Entry("vpp", "int64_value: 2");
  const std::map<std::string, std::string> cases = {
      {Megatron(8, 1, 8, ""), "parameters.recompute"},
      {Megatron(8, 2, 4, none), "parameters.vpp"},
      {Megatron(8, 1, 8, none + vpp), "parameters.vpp"},
      {Megatron(8, 1, 4, none), "constraints[0]"},
      {Megatron(3, 1, 8, none), "parameters.tp"},
      {Megatron(8, 1, 65, none), "parameters.dp"},
      {Megatron(8, 1, 8, Entry("recompute", "string_value: 'No'")),
       "parameters.recompute"},
      {Megatron(8, 1, 8, Entry("recompute", "bool_value: true")),
       "parameters.recompute"},
      {Megatron(8, 1, 8, none + Entry("zero", "int64_value: 1")),
       "parameters.zero"},
      {Megatron(8, 1, 8, none + Entry("tp", "list_value {}")), "parameters.tp"},
  };
  for (const auto& [text, path] : cases) {
    const auto point = space->ParsePoint(ReadValues(text), context);
    EXPECT_THAT(point, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
    EXPECT_EQ(FieldNamedBy(point.status()), path) << point.status();
  }
  EXPECT_THAT(space->ParsePoint(ReadValues(Megatron(8, 1, 4, none)), context),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"tp * pp * dp = gpus\" does not hold")));
  CUBICML_EXPECT_OK(
      space->ParsePoint(ReadValues(Megatron(8, 2, 4, none + vpp)), context));
}

TEST(SearchSpaceTest, HeadsMustDivide) {
  const auto space = ReadSpace(kMegatron);
  const Context context =
      ReadContext(*space, Gpus(64) + Entry("heads", "int64_value: 12"));
  for (const Point& point : AllPoints(*space, context)) {
    EXPECT_NE(point[0], 8.0);
    EXPECT_EQ(point[0] * point[1] * point[2], 64.0);
    EXPECT_EQ(std::isnan(point[3]), point[1] == 1.0);
  }
}

TEST(SearchSpaceTest, VectorsAreListsOfTheirLength) {
  const auto space = ReadSpace(R"(
      parameters {name: "shard" category {values {string_value: "full"}
                                          values {string_value: "none"}}
                  repeat: 3 default_value {string_value: "none"}}
      constraints {expression: "vec_count(shard, 'full') <= 1"})");
  const Context context = ReadContext(*space);
  EXPECT_THAT(AllPoints(*space, context), SizeIs(4));
  const std::string full = "values {string_value: 'full'} ";
  const std::string none = "values {string_value: 'none'} ";
  const auto parse = [&](const std::string& value) {
    return space->ParsePoint(ReadValues(Entry("shard", value)), context);
  };
  EXPECT_THAT(parse("list_value {" + none + full + none + "}"),
              IsOkAndHolds(ElementsAre(1, 0, 1)));
  EXPECT_EQ(FieldNamedBy(parse("list_value {" + none + "}").status()),
            "parameters.shard");
  EXPECT_EQ(FieldNamedBy(parse("string_value: 'none'").status()),
            "parameters.shard");
  EXPECT_EQ(
      FieldNamedBy(parse("list_value {" + none + full + "values {}}").status()),
      "parameters.shard[2]");
  EXPECT_EQ(
      FieldNamedBy(parse("list_value {" + full + full + none + "}").status()),
      "constraints[0]");
}

TEST(SearchSpaceTest, ParametersMayBeFixedInPart) {
  const auto space = ReadSpace(kMegatron);
  const Context context = ReadContext(*space, Gpus(64));
  const auto fixed =
      space->ParseFixed(ReadValues(Entry("vpp", "int64_value: 4")));
  ASSERT_THAT(fixed, IsOk());
  // vpp has a value only where pp > 1.
  EXPECT_TRUE(space->Enumerate(context, *fixed, 1 << 30, [](const Point& p) {
    EXPECT_GT(p[1], 1.0);
    EXPECT_EQ(p[3], 4.0);
    return true;
  }));
  const auto baseline = space->Baseline(context, *fixed);
  EXPECT_THAT(baseline, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(FieldNamedBy(baseline.status()), "fixed_parameters.vpp");
  for (const auto& [text, path] : std::map<std::string, std::string>{
           {Entry("vpp", "int64_value: 3"), "fixed_parameters.vpp"},
           {Entry("zero", "int64_value: 3"), "fixed_parameters.zero"}}) {
    EXPECT_EQ(FieldNamedBy(space->ParseFixed(ReadValues(text)).status()), path);
  }
}

TEST(SearchSpaceTest, TheBaselineDependsOnTheContext) {
  const auto space = ReadSpace(kMegatron);
  const Context fits = ReadContext(*space, Gpus(64));
  const auto baseline = space->Baseline(fits, space->Free());
  ASSERT_THAT(baseline, IsOk());
  EXPECT_EQ((*baseline)[2], 64.0);
  EXPECT_TRUE(std::isnan((*baseline)[3]));
  const auto broken =
      space->Baseline(ReadContext(*space, Gpus(32)), space->Free());
  EXPECT_THAT(broken, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("tp = 1, pp = 1, dp = 64")));
  EXPECT_EQ(FieldNamedBy(broken.status()), "constraints[0]");
  // A fixed knob may mend it.
  const auto fixed =
      space->ParseFixed(ReadValues(Entry("dp", "int64_value: 32")));
  ASSERT_THAT(fixed, IsOk());
  CUBICML_EXPECT_OK(space->Baseline(ReadContext(*space, Gpus(32)), *fixed));
}

TEST(SearchSpaceTest, AContextWithoutValidPointsHasNone) {
  const auto space = ReadSpace(kMegatron);
  const Context context = ReadContext(*space, Gpus(7 * 11 * 13));
  Rng rng(1);
  EXPECT_THAT(AllPoints(*space, context), IsEmpty());
  EXPECT_THAT(*space->ValidPoints(context, space->Free(), 10), IsEmpty());
  EXPECT_EQ(space->Sample(context, space->Free(), 100000, &rng), std::nullopt);
}

TEST(SearchSpaceTest, EnumerationStopsWhenToldAndWhenOutOfSteps) {
  const auto space = ReadSpace(kMegatron);
  const Context context = ReadContext(*space, Gpus(64));
  int visited = 0;
  EXPECT_FALSE(space->Enumerate(context, space->Free(), 1 << 30,
                                [&](const Point&) { return ++visited < 3; }));
  EXPECT_EQ(visited, 3);
  EXPECT_FALSE(space->Enumerate(context, space->Free(), 10,
                                [](const Point&) { return true; }));
}

// Of 2^knobs assignments few are valid, and only the last knob tells which.
std::string RarePoints(int knobs) {
  return absl::StrCat(
      "parameters {name: 'x' integer {min: 0 max: 1} repeat: ", knobs,
      "} context {name: 'sum' type: INTEGER} "
      "constraints {expression: 'vec_sum(x) = sum'}");
}

TEST(SearchSpaceTest, AStopEndsAWalkBetweenPoints) {
  const auto space = ReadSpace(RarePoints(24));
  const Context context = ReadContext(*space, Entry("sum", "int64_value: 2"));
  std::stop_source source;
  int visited = 0;
  const auto stop_at_once = [&](const Point&) {
    source.request_stop();
    ++visited;
    return true;
  };
  EXPECT_FALSE(space->Enumerate(context, space->Free(), 1 << 30, stop_at_once,
                                source.get_token()));
  // There are 276.
  EXPECT_LT(visited, 150);
}

TEST(SearchSpaceTest, WhatWasStoppedIsNotRemembered) {
  const auto space = ReadSpace(RarePoints(14));
  const Context context = ReadContext(*space, Entry("sum", "int64_value: 2"));
  std::stop_source source;
  source.request_stop();
  const std::stop_token stop = source.get_token();
  Rng rng(1);
  EXPECT_EQ(space->ValidPoints(context, space->Free(), 1000, stop), nullptr);
  EXPECT_EQ(space->Sample(context, space->Free(), 1 << 20, &rng, stop),
            std::nullopt);
  const auto points = space->ValidPoints(context, space->Free(), 1000);
  ASSERT_NE(points, nullptr);
  EXPECT_THAT(*points, SizeIs(91));
  EXPECT_THAT(space->Neighbours(points->front(), context, space->Free(), 1000,
                                &rng, stop),
              IsEmpty());
}

TEST(SearchSpaceTest, SamplesOfASmallSpaceAreUniform) {
  // A depth-first draw of x first would give x = 1 half of all samples.
  const auto space = ReadSpace(R"(
      parameters {name: "x" integer {min: 0 max: 1}}
      parameters {name: "y" integer {min: 0 max: 8}}
      constraints {expression: "x = 0 OR y = 0"})");
  const Context context = ReadContext(*space);
  std::map<Point, int> counts;
  Rng rng(5);
  for (int i = 0; i < 10000; ++i) {
    ++counts[*space->Sample(context, space->Free(), 1000, &rng)];
  }
  ASSERT_THAT(counts, SizeIs(10));
  for (const auto& [point, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(SearchSpaceTest, AListIsTheSameWhateverWasAskedBefore) {
  // Of 2^24 configurations a sample does not walk for long; a list does, for
  // 80,000 steps.
  const std::string text =
      RarePoints(15) +
      "parameters {name: 'y' integer {min: 0 max: 1} repeat: 9} "
      "constraints {expression: 'vec_sum(y) = 0'}";
  const auto fresh = ReadSpace(text);
  const auto sampled = ReadSpace(text);
  const Context context = ReadContext(*fresh, Entry("sum", "int64_value: 1"));
  Rng rng(1);
  ASSERT_TRUE(sampled->Sample(context, sampled->Free(), 1 << 20, &rng));
  const auto list = sampled->ValidPoints(context, sampled->Free(), 1000);
  ASSERT_NE(list, nullptr);
  EXPECT_THAT(*list, SizeIs(15));
  // And a sample is the same whether there is a list or not.
  ASSERT_NE(fresh->ValidPoints(context, fresh->Free(), 1000), nullptr);
  Rng other(1);
  Rng same(1);
  const auto unlisted = ReadSpace(text);
  EXPECT_EQ(fresh->Sample(context, fresh->Free(), 1 << 20, &other),
            unlisted->Sample(context, unlisted->Free(), 1 << 20, &same));
}

TEST(SearchSpaceTest, ListsOfManyContextsAreRememberedAtATime) {
  const auto space = ReadSpace(kMegatron);
  std::vector<Context> contexts;
  for (int i = 0; i < 12; ++i) {
    contexts.push_back(ReadContext(*space, Gpus(1 << i)));
  }
  std::vector<std::shared_ptr<const std::vector<Point>>> lists;
  for (const Context& context : contexts) {
    lists.push_back(space->ValidPoints(context, space->Free(), 10000));
  }
  for (size_t i = 0; i < contexts.size(); ++i) {
    EXPECT_EQ(space->ValidPoints(contexts[i], space->Free(), 10000), lists[i]);
  }
}

TEST(SearchSpaceTest, FixedKnobsLeaveTheSameOfAListAsOfAWalk) {
  const auto walked = ReadSpace(kMegatron);
  const auto listed = ReadSpace(kMegatron);
  const Context context = ReadContext(*walked, Gpus(64));
  ASSERT_NE(listed->ValidPoints(context, listed->Free(), 10000), nullptr);
  for (const size_t knob : {size_t{0}, size_t{3}}) {  // tp, vpp
    FixedKnobs fixed = walked->Free();
    fixed[knob] = 4.0;
    const auto points = walked->ValidPoints(context, fixed, 10000);
    ASSERT_NE(points, nullptr);
    EXPECT_FALSE(points->empty());
    EXPECT_EQ(listed->ValidPoints(context, fixed, points->size() - 1), nullptr);
    const auto filtered = listed->ValidPoints(context, fixed, points->size());
    ASSERT_NE(filtered, nullptr);
    std::vector<std::string> keys[2];
    for (const Point& point : *points) {
      keys[0].push_back(walked->PointKey(point));
    }
    for (const Point& point : *filtered) {
      keys[1].push_back(walked->PointKey(point));
    }
    EXPECT_EQ(keys[0], keys[1]);
  }
}

// 30 knobs, 10^20 points, with ties between distant knobs.
std::string LargeSpace() {
  std::string text;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&text, "parameters {name: 'x", i,
                    "' integer {min: 1 max: 5}} ");
  }
  absl::StrAppend(&text,
                  "constraints {expression: 'x0 * x15 * x29 <> 6'} "
                  "constraints {expression: 'x3 <= x28'} "
                  "constraints {expression: '(x1 + x2) % 2 = 0'} ");
  return text;
}

TEST(SearchSpaceTest, LargeSpacesAreSampledAndHaveNeighbours) {
  const auto space = ReadSpace(LargeSpace());
  const Context context = ReadContext(*space);
  EXPECT_EQ(space->ValidPoints(context, space->Free(), 1000), nullptr);
  Rng rng(3);
  std::set<Point> seen;
  for (int i = 0; i < 200; ++i) {
    const auto point = space->Sample(context, space->Free(), 100000, &rng);
    ASSERT_TRUE(point.has_value());
    CUBICML_EXPECT_OK(space->CheckValid(*point, context, space->Free()));
    seen.insert(*point);
    const std::vector<Point> neighbours =
        space->Neighbours(*point, context, space->Free(), 50, &rng);
    EXPECT_THAT(neighbours, SizeIs(50));
    for (const Point& other : neighbours) {
      CUBICML_EXPECT_OK(space->CheckValid(other, context, space->Free()));
    }
  }
  EXPECT_THAT(seen, SizeIs(200));
}

// No value of the last knob fits a bad first one: a walk that goes back one
// knob at a time would try 4^14 configurations for each.
TEST(SearchSpaceTest, DeadEndsGoBackToWhatTheyAreDueTo) {
  std::string text = "parameters {name: 'first' integer {min: 1 max: 100}} ";
  for (int i = 0; i < 14; ++i) {
    absl::StrAppend(&text, "parameters {name: 'x", i,
                    "' integer {min: 1 max: 4}} ");
  }
  absl::StrAppend(&text,
                  "parameters {name: 'last' integer {min: 1 max: 3}"
                  " default_value {int64_value: 1}} "
                  "context {name: 'sum' type: INTEGER} "
                  "constraints {expression: 'first + last = sum'} ");
  const auto space = ReadSpace(text);
  const Context context = ReadContext(*space, Entry("sum", "int64_value: 103"));
  int visited = 0;
  EXPECT_FALSE(
      space->Enumerate(context, space->Free(), 10000, [&](const Point& point) {
        EXPECT_EQ(point.front(), 100.0);
        return ++visited < 100;
      }));
  EXPECT_EQ(visited, 100);
  const Context nothing = ReadContext(*space, Entry("sum", "int64_value: 104"));
  EXPECT_TRUE(space->Enumerate(nothing, space->Free(), 10000,
                               [](const Point&) { return true; }));
}

TEST(SearchSpaceTest, ProductsThatTieKnobsHaveNeighbours) {
  const auto space = ReadSpace(kMegatron);
  const Context context = ReadContext(*space, Gpus(64));
  Rng rng(9);
  for (const Point& point : AllPoints(*space, context)) {
    const std::vector<Point> neighbours =
        space->Neighbours(point, context, space->Free(), 1000, &rng);
    // Some change tp * pp * dp, which takes two knobs at once.
    EXPECT_TRUE(std::any_of(
        neighbours.begin(), neighbours.end(), [&](const Point& other) {
          return other[0] != point[0] || other[1] != point[1];
        }));
  }
}

TEST(SearchSpaceTest, RowsOfATableAreNeighboursOfEachOther) {
  // No two rows agree in any column.
  std::string text = "constraints {table {columns: ['a', 'b', 'c'] ";
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&text, "rows {values {int64_value: ", i,
                    "} values {int64_value: ", (i * 2) % 7,
                    "} values {int64_value: ", (i * 3) % 7, "}} ");
  }
  text += "}} ";
  for (const char* name : {"a", "b", "c"}) {
    absl::StrAppend(&text, "parameters {name: '", name,
                    "' integer {min: 0 max: 6}} ");
  }
  const auto space = ReadSpace(text);
  const Context context = ReadContext(*space);
  const std::vector<Point> points = AllPoints(*space, context);
  ASSERT_THAT(points, SizeIs(6));
  Rng rng(2);
  EXPECT_THAT(space->Neighbours(points[0], context, space->Free(), 3, &rng),
              SizeIs(3));
}

TEST(SearchSpaceTest, ATableGivesTheValuesOfAContinuousKnob) {
  const auto space = ReadSpace(R"(
      parameters {name: "lr" number {min: 0 max: 1}
                  default_value {double_value: 0.3}}
      parameters {name: "x" integer {min: 1 max: 2}}
      constraints {table {columns: ["lr", "x"]
        rows {values {double_value: 0.3} values {int64_value: 1}}
        rows {values {double_value: 0.123456789} values {int64_value: 2}}
        rows {values {double_value: 0.5} values {int64_value: 2}}}})");
  const Context context = ReadContext(*space);
  EXPECT_THAT(AllPoints(*space, context),
              ElementsAre(ElementsAre(0.123456789, 2.0), ElementsAre(0.3, 1.0),
                          ElementsAre(0.5, 2.0)));
  Rng rng(4);
  EXPECT_THAT(space->Neighbours({0.3, 1.0}, context, space->Free(), 10, &rng),
              SizeIs(2));
  FixedKnobs fixed = space->Free();
  fixed[0] = 0.123456789;
  EXPECT_EQ(space->Sample(context, fixed, 1000, &rng), (Point{0.123456789, 2}));
}

TEST(SearchSpaceTest, FixedContinuousKnobsMayBeBetweenTheLevels) {
  const auto space = ReadSpace(R"(
      parameters {name: "lr" number {min: 0 max: 1}}
      parameters {name: "x" integer {min: 1 max: 3}}
      constraints {expression: "lr * x < 1"})");
  const Context context = ReadContext(*space);
  FixedKnobs fixed = space->Free();
  fixed[0] = 0.41234567;
  Rng rng(4);
  for (int i = 0; i < 20; ++i) {
    const auto point = space->Sample(context, fixed, 10000, &rng);
    ASSERT_TRUE(point.has_value());
    EXPECT_EQ((*point)[0], 0.41234567);
    EXPECT_LE((*point)[1], 2.0);
  }
}

TEST(SearchSpaceTest, SampleInOrderTriesTheFirstOfTheOrderFirst) {
  const auto space = ReadSpace(R"(
      parameters {name: "x" integer {min: 0 max: 9}}
      parameters {name: "y" integer {min: 0 max: 9}}
      constraints {expression: "x + y <> 16"}
      constraints {expression: "y <> 9"})");
  const Context context = ReadContext(*space);
  const auto backwards = [](size_t, size_t levels, std::vector<size_t>* order) {
    for (size_t i = levels; i-- > 0;) order->push_back(i);
  };
  EXPECT_EQ(space->SampleInOrder(context, space->Free(), 1000, backwards),
            (Point{9, 8}));
  // An order may leave values out, and what it lists may not exist.
  const auto odd = [](size_t knob, size_t, std::vector<size_t>* order) {
    *order = {99, knob == 0 ? size_t{7} : size_t{9}};
  };
  EXPECT_EQ(space->SampleInOrder(context, space->Free(), 1000, odd),
            std::nullopt);
}

TEST(SearchSpaceTest, KeysDoNotChangeWhenTheStudyGainsValues) {
  const auto old = ReadSpace(R"(
      parameters {name: "m" category {values {string_value: "a"}
                                      values {string_value: "c"}}}
      parameters {name: "x" integer {values: [1, 4]}})");
  const auto grown = ReadSpace(R"(
      parameters {name: "m" category {values {string_value: "a"}
                                      values {string_value: "b"}
                                      values {string_value: "c"}}}
      parameters {name: "x" integer {values: [1, 2, 4]}})");
  const Context context = ReadContext(*old);
  for (const Point& point : AllPoints(*old, context)) {
    const auto same = grown->ParsePoint(old->FormatPoint(point), context);
    ASSERT_THAT(same, IsOk());
    EXPECT_EQ(grown->PointKey(*same), old->PointKey(point));
  }
}

TEST(SearchSpaceTest, ThreadsUseOneSpaceAtOnce) {
  const auto space = ReadSpace(kMegatron);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&space, t] {
      Rng rng(static_cast<uint64_t>(t));
      for (int i = 0; i < 20; ++i) {
        // More contexts than are remembered.
        const Context context = ReadContext(*space, Gpus(1 << ((t + i) % 7)));
        const auto point = space->Sample(context, space->Free(), 10000, &rng);
        ASSERT_TRUE(point.has_value());
        CUBICML_EXPECT_OK(space->CheckValid(*point, context, space->Free()));
        for (const Point& other :
             space->Neighbours(*point, context, space->Free(), 5, &rng)) {
          CUBICML_EXPECT_OK(space->CheckValid(other, context, space->Free()));
        }
        const auto all = space->ValidPoints(context, space->Free(), 100000);
        ASSERT_NE(all, nullptr);
        EXPECT_FALSE(all->empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cubicml
