// SPDX-License-Identifier: Apache-2.0

#include "predictor/table_constraint.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kAbsent = TableRows::kAbsent;

TEST(TableRowsTest, RowsAreSortedAndDistinct) {
  const TableRows rows(2, {3, 1, 1, 2, 3, 1, 1, 1});
  EXPECT_EQ(rows.rows(), 3u);
  std::vector<int32_t> codes;
  rows.ListCodes(rows.All(), 0, &codes);
  EXPECT_THAT(codes, ElementsAre(1, 3));
  TableRows::Matches ones;
  ASSERT_TRUE(rows.Narrow(rows.All(), 0, 1, &ones));
  rows.ListCodes(ones, 1, &codes);
  EXPECT_THAT(codes, ElementsAre(1, 2));
  EXPECT_FALSE(rows.Narrow(rows.All(), 0, 2, &ones));
  EXPECT_THAT(ones, IsEmpty());
}

TEST(TableRowsTest, AColumnWithoutValueMatchesEveryRow) {
  const TableRows rows(3, {1, 1, 1, 1, 2, 2, 2, 1, 3, 2, 2, 1});
  TableRows::Matches any;
  TableRows::Matches two;
  TableRows::Matches last;
  std::vector<int32_t> codes;
  ASSERT_TRUE(rows.Narrow(rows.All(), 0, kAbsent, &any));
  rows.ListCodes(any, 1, &codes);
  EXPECT_THAT(codes, ElementsAre(1, 2));
  ASSERT_TRUE(rows.Narrow(any, 1, 2, &two));
  rows.ListCodes(two, 2, &codes);
  EXPECT_THAT(codes, ElementsAre(1, 2));
  EXPECT_TRUE(rows.Narrow(two, 2, 1, &last));
  EXPECT_FALSE(rows.Narrow(two, 2, 3, &last));
}

TEST(TableRowsTest, ACellWithoutValueMatchesOnlySuchAColumn) {
  const TableRows rows(2, {1, kAbsent, 2, 5});
  TableRows::Matches one;
  TableRows::Matches next;
  ASSERT_TRUE(rows.Narrow(rows.All(), 0, 1, &one));
  std::vector<int32_t> codes;
  rows.ListCodes(one, 1, &codes);
  EXPECT_THAT(codes, IsEmpty());
  EXPECT_FALSE(rows.Narrow(one, 1, 5, &next));
  EXPECT_TRUE(rows.Narrow(one, 1, kAbsent, &next));
}

TEST(TableRowsTest, AgreesWithLookingThroughAllRows) {
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const size_t columns = 1 + rng.Below(4);
    std::vector<int32_t> cells(columns * rng.Below(30));
    for (int32_t& cell : cells) {
      cell = static_cast<int32_t>(rng.Below(5)) - 1;
    }
    const TableRows rows(columns, cells);
    for (int i = 0; i < 50; ++i) {
      std::vector<int32_t> wanted(columns);
      for (int32_t& code : wanted)
        code = static_cast<int32_t>(rng.Below(5)) - 1;
      bool exists = false;
      for (size_t r = 0; r < cells.size() / columns; ++r) {
        bool match = true;
        for (size_t c = 0; c < columns; ++c) {
          match = match &&
                  (wanted[c] == kAbsent || wanted[c] == cells[r * columns + c]);
        }
        exists = exists || match;
      }
      TableRows::Matches matches = rows.All();
      TableRows::Matches next;
      bool found = !matches.empty();
      for (size_t c = 0; c < columns && found; ++c) {
        found = rows.Narrow(matches, c, wanted[c], &next);
        matches.swap(next);
      }
      EXPECT_EQ(found, exists);
    }
  }
}

TEST(TableRowsTest, DrawsAreInProportionToTheRows) {
  const TableRows rows(2, {1, 1, 1, 2, 1, 3, 2, 1});
  Rng rng(8);
  std::map<int32_t, int> counts;
  for (int i = 0; i < 4000; ++i) ++counts[rows.DrawCode(rows.All(), 0, &rng)];
  EXPECT_NEAR(counts[1], 3000, 150);
  EXPECT_NEAR(counts[2], 1000, 150);
}

}  // namespace
}  // namespace cubicml
