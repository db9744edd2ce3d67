// SPDX-License-Identifier: Apache-2.0
//
// Hundreds of random spaces against an oracle that filters the full product
// (random_space.h).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "predictor/search_space.h"
#include "tests/predictor/random_space.h"
#include "tests/predictor/space_text.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

constexpr uint64_t kSpaces = 400;

// NaN equals NaN here.
std::string Bytes(const Point& point) {
  std::string bytes;
  for (const double value : point) {
    bytes += std::isnan(value) ? "~" : std::to_string(value);
    bytes += ',';
  }
  return bytes;
}

std::set<std::string> BytesOf(const std::vector<Point>& points) {
  std::set<std::string> set;
  for (const Point& point : points) set.insert(Bytes(point));
  return set;
}

class RandomSpaceTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Forty seeds for each parameter; a failure tells which.
  template <typename Check>
  void ForEachSpace(Check check) {
    for (uint64_t seed = GetParam() * 40; seed < GetParam() * 40 + 40; ++seed) {
      const RandomSpace random(seed, true);
      const auto space = SearchSpace::Parse(random.study());
      ASSERT_THAT(space, IsOk()) << "seed " << seed << "\n"
                                 << random.study().DebugString();
      const auto context = (*space)->ParseContext(random.context());
      ASSERT_THAT(context, IsOk());
      SCOPED_TRACE(seed);
      check(random, **space, *context, random.ListValid());
      if (HasFailure()) {
        ADD_FAILURE() << random.study().DebugString();
        return;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpaceTest,
                         ::testing::Range(uint64_t{0}, kSpaces / 40));

TEST_P(RandomSpaceTest, EnumerationIsTheFilteredProductInOrder) {
  ForEachSpace([](const RandomSpace&, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    const std::vector<Point> points = AllPoints(space, context);
    ASSERT_EQ(points.size(), valid.size());
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(Bytes(points[i]), Bytes(valid[i]));
    }
    const auto listed = space.ValidPoints(context, space.Free(), valid.size());
    ASSERT_NE(listed, nullptr);
    EXPECT_EQ(BytesOf(*listed), BytesOf(valid));
    if (!valid.empty()) {
      EXPECT_EQ(space.ValidPoints(context, space.Free(), valid.size() - 1),
                nullptr);
    }
  });
}

TEST_P(RandomSpaceTest, EnumerationWithFixedKnobsIsASubset) {
  ForEachSpace([](const RandomSpace& random, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    Rng rng(7);
    for (int i = 0; i < 5; ++i) {
      FixedKnobs fixed = space.Free();
      for (size_t k = 0; k < random.knobs(); ++k) {
        const std::vector<double>& values = random.values(k);
        if (rng.Below(3) == 0) fixed[k] = values[rng.Below(values.size())];
      }
      std::vector<Point> wanted;
      for (const Point& point : valid) {
        bool as_fixed = true;
        for (size_t k = 0; k < point.size(); ++k) {
          as_fixed = as_fixed && (std::isnan(fixed[k]) || fixed[k] == point[k]);
        }
        if (as_fixed) wanted.push_back(point);
      }
      std::vector<Point> found;
      EXPECT_TRUE(
          space.Enumerate(context, fixed, 1 << 30, [&](const Point& point) {
            found.push_back(point);
            return true;
          }));
      ASSERT_EQ(found.size(), wanted.size());
      const std::set<std::string> known = BytesOf(wanted);
      EXPECT_EQ(BytesOf(found), known);
      const std::optional<Point> sample =
          space.Sample(context, fixed, 1 << 20, &rng);
      ASSERT_EQ(sample.has_value(), !wanted.empty());
      if (sample) {
        EXPECT_EQ(known.count(Bytes(*sample)), 1u);
        CUBICML_EXPECT_OK(space.CheckValid(*sample, context, fixed));
        for (const Point& point :
             space.Neighbours(*sample, context, fixed, 20, &rng)) {
          EXPECT_EQ(known.count(Bytes(point)), 1u);
        }
      }
    }
  });
}

TEST_P(RandomSpaceTest, EverySampleIsValidAndFoundWhenThereIsOne) {
  ForEachSpace([](const RandomSpace& random, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    const std::set<std::string> known = BytesOf(valid);
    Rng rng(11);
    for (int i = 0; i < 20; ++i) {
      const std::optional<Point> point =
          space.Sample(context, space.Free(), 1 << 20, &rng);
      ASSERT_EQ(point.has_value(), !valid.empty());
      if (!point) break;
      EXPECT_EQ(known.count(Bytes(*point)), 1u);
      EXPECT_TRUE(random.IsValid(*point));
      const std::optional<Point> ordered = space.SampleInOrder(
          context, space.Free(), 1 << 20,
          [&](size_t, size_t levels, std::vector<size_t>* order) {
            for (size_t l = 0; l < levels; ++l) order->push_back(l);
            rng.Shuffle(order);
          });
      ASSERT_TRUE(ordered.has_value());
      EXPECT_EQ(known.count(Bytes(*ordered)), 1u);
    }
  });
}

TEST_P(RandomSpaceTest, NeighboursAreValidDistinctAndHoldAllSingleChanges) {
  ForEachSpace([](const RandomSpace& random, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    const std::set<std::string> known = BytesOf(valid);
    Rng rng(13);
    for (int i = 0; i < 5 && !valid.empty(); ++i) {
      const Point& point = valid[rng.Below(valid.size())];
      const std::vector<Point> found =
          space.Neighbours(point, context, space.Free(), 100000, &rng);
      const std::set<std::string> bytes = BytesOf(found);
      EXPECT_EQ(bytes.size(), found.size());
      EXPECT_EQ(bytes.count(Bytes(point)), 0u);
      for (const std::string& one : bytes) EXPECT_EQ(known.count(one), 1u);
      for (const Point& other : valid) {
        std::vector<size_t> differing;
        for (size_t k = 0; k < point.size(); ++k) {
          if (std::isnan(point[k]) != std::isnan(other[k]) ||
              (!std::isnan(point[k]) && point[k] != other[k])) {
            differing.push_back(k);
          }
        }
        if (differing.size() == 1 && !random.Steers(differing[0])) {
          EXPECT_EQ(bytes.count(Bytes(other)), 1u);
        }
      }
      if (valid.size() > 1 && !random.has_conditions() && !found.empty()) {
        EXPECT_EQ(
            space.Neighbours(point, context, space.Free(), 1, &rng).size(), 1u);
      }
    }
  });
}

TEST_P(RandomSpaceTest, CheckValidAgreesWithTheOracleOnAnyPoint) {
  ForEachSpace([](const RandomSpace& random, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    Rng rng(17);
    for (const Point& point : valid) {
      CUBICML_EXPECT_OK(space.CheckValid(point, context, space.Free()));
    }
    for (int i = 0; i < 100; ++i) {
      Point point(random.knobs());
      for (size_t k = 0; k < point.size(); ++k) {
        const std::vector<double>& values = random.values(k);
        point[k] =
            rng.Below(5) == 0 ? std::nan("") : values[rng.Below(values.size())];
        if (rng.Below(30) == 0) point[k] += 0.03;
      }
      const absl::Status status =
          space.CheckValid(point, context, space.Free());
      EXPECT_EQ(status.ok(), random.IsValid(point)) << status;
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_NE(FieldNamedBy(status), "");
      }
    }
  });
}

TEST_P(RandomSpaceTest, FormatAndParseAreInverseAndKeysAreInjective) {
  ForEachSpace([](const RandomSpace&, const SearchSpace& space,
                  const Context& context, const std::vector<Point>& valid) {
    std::map<std::string, std::string> by_key;
    // Every one of a small space, some of a large one.
    const size_t stride = 1 + valid.size() / 300;
    for (size_t i = 0; i < valid.size(); i += stride) {
      const Point& point = valid[i];
      const auto parsed = space.ParsePoint(space.FormatPoint(point), context);
      ASSERT_THAT(parsed, IsOk());
      EXPECT_EQ(Bytes(*parsed), Bytes(point));
      const auto stored =
          space.ParseStoredPoint(space.FormatPoint(point), context);
      ASSERT_THAT(stored, IsOk());
      EXPECT_EQ(Bytes(*stored), Bytes(point));
      EXPECT_TRUE(by_key.emplace(space.PointKey(point), Bytes(point)).second);
      const auto fixed = space.ParseFixed(space.FormatPoint(point));
      ASSERT_THAT(fixed, IsOk());
      CUBICML_EXPECT_OK(space.CheckValid(point, context, *fixed));
    }
    const auto again = space.ParseContext(space.FormatContext(context));
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(again->key, context.key);
  });
}

TEST_P(RandomSpaceTest, TheBaselineIsRefusedExactlyWhenItIsInvalid) {
  for (uint64_t seed = GetParam() * 40; seed < GetParam() * 40 + 40; ++seed) {
    const RandomSpace random(seed, false);
    const auto space = SearchSpace::Parse(random.study());
    const Point baseline = random.Baseline();
    ASSERT_EQ(space.ok(), random.IsValid(baseline))
        << seed << " " << space.status() << random.study().DebugString();
    if (space.ok()) {
      const auto context = (*space)->ParseContext({});
      ASSERT_THAT(context, IsOk());
      const auto found = (*space)->Baseline(*context, (*space)->Free());
      ASSERT_THAT(found, IsOk());
      EXPECT_EQ(Bytes(*found), Bytes(baseline));
      continue;
    }
    EXPECT_EQ(space.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldNamedBy(space.status()).rfind("constraints[", 0), 0u);
    const bool says_nothing_is_left =
        space.status().message().find("no configuration of the domains") !=
        absl::string_view::npos;
    EXPECT_EQ(says_nothing_is_left, random.ListValid().empty())
        << seed << " " << space.status() << random.study().DebugString();
  }
}

}  // namespace
}  // namespace cubicml
