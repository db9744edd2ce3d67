// SPDX-License-Identifier: Apache-2.0

#include "base/rng.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "gmock/gmock.h"

namespace cubicml {
namespace {

// An implementation of its own of the published algorithm.
class Reference {
 public:
  explicit Reference(uint64_t seed) {
    for (uint64_t& word : s_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  uint64_t Next() {
    const uint64_t result = Rotate(s_[1] * 5, 7) * 9;
    const uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = Rotate(s_[3], 45);
    return result;
  }

 private:
  static uint64_t Rotate(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }
  uint64_t s_[4] = {};
};

// Stored studies are replayed from their seeds: these must never change.
TEST(RngTest, GoldenValues) {
  Rng rng(0);
  EXPECT_EQ(rng(), 11091344671253066420u);
  EXPECT_EQ(rng(), 13793997310169335082u);
  EXPECT_EQ(rng(), 1900383378846508768u);
}

TEST(RngTest, IsThePublishedGenerator) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{42}, ~uint64_t{0}}) {
    Rng rng(seed);
    Reference reference(seed);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(rng(), reference.Next());
  }
}

TEST(RngTest, SameSeedSameNumbersAndDerivedOnesDiffer) {
  Rng a(7);
  Rng b(7);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a(), b());
  std::set<uint64_t> firsts;
  for (uint64_t key = 0; key < 100; ++key) {
    firsts.insert(Rng::Derive(7, {key})());
    firsts.insert(Rng::Derive(7, {key, 0})());
    firsts.insert(Rng::Derive(7, {0, key + 1})());
    firsts.insert(Rng::Derive(8, {key})());
    EXPECT_EQ(Rng::Derive(7, {key, 3})(), Rng::Derive(7, {key, 3})());
  }
  EXPECT_EQ(firsts.size(), 400u);
}

TEST(RngTest, NewSeedsDiffer) { EXPECT_NE(Rng::NewSeed(), Rng::NewSeed()); }

TEST(RngTest, UniformFillsTheUnitInterval) {
  Rng rng(1);
  constexpr int kDraws = 200'000;
  std::vector<int> bins(20);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
    ++bins[static_cast<size_t>(x * 20)];
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  double chi2 = 0;
  for (const int count : bins) {
    const double expected = kDraws / 20.0;
    chi2 += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi2, 43.8);  // 99.9 % of 19 degrees of freedom
}

TEST(RngTest, BelowIsUniformAndBelow) {
  Rng rng(2);
  std::vector<int> bins(7);
  for (int i = 0; i < 70'000; ++i) {
    const uint64_t x = rng.Below(7);
    ASSERT_LT(x, 7u);
    ++bins[x];
  }
  double chi2 = 0;
  for (const int count : bins) {
    chi2 += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  }
  EXPECT_LT(chi2, 22.5);  // 99.9 % of 6 degrees of freedom
  EXPECT_EQ(rng.Below(1), 0u);
  const uint64_t large = (uint64_t{1} << 63) + 1;
  for (int i = 0; i < 100; ++i) EXPECT_LT(rng.Below(large), large);
}

TEST(RngTest, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(3);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    if (std::abs(x) > 2) ++beyond_two;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.003);
}

TEST(RngTest, ShuffleKeepsTheElementsAndGivesEveryOrder) {
  Rng rng(4);
  std::set<std::vector<int>> orders;
  for (int i = 0; i < 500; ++i) {
    std::vector<int> values = {1, 2, 3, 4};
    rng.Shuffle(&values);
    EXPECT_THAT(values, testing::UnorderedElementsAre(1, 2, 3, 4));
    orders.insert(values);
  }
  EXPECT_EQ(orders.size(), 24u);
  std::vector<int> none;
  rng.Shuffle(&none);
}

}  // namespace
}  // namespace cubicml
