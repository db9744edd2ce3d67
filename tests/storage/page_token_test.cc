// SPDX-License-Identifier: Apache-2.0

#include "storage/page_token.h"

#include <limits>
#include <string>

#include "base/field_error.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(PageTokenTest, EveryKindOfKeyComesBack) {
  const std::vector<FilterValue> keys = {
      FilterValue(),
      FilterValue(int64_t{-5}),
      FilterValue(std::numeric_limits<int64_t>::min()),
      FilterValue(0.1),
      FilterValue(-std::numeric_limits<double>::infinity()),
      FilterValue(std::string()),
      FilterValue(std::string("studies/\0\xff", 10)),
  };
  for (const FilterValue& key : keys) {
    for (const int64_t id : {int64_t{0}, int64_t{1}, int64_t{-1}}) {
      const std::string token = FormatPageToken("list", {key, id});
      const auto cursor = ParsePageToken("list", token);
      ASSERT_THAT(cursor, IsOk());
      EXPECT_EQ(cursor->key, key);
      EXPECT_EQ(cursor->id, id);
    }
  }
}

TEST(PageTokenTest, IsSafeInAUrl) {
  for (int64_t id = 0; id < 1000; ++id) {
    const std::string token =
        FormatPageToken("list", {FilterValue(std::string("\xff\xfe")), id});
    EXPECT_THAT(token, testing::MatchesRegex("[A-Za-z0-9_-]+"));
  }
}

TEST(PageTokenTest, TokenOfAnotherListIsRefusedByName) {
  const std::string token = FormatPageToken("list", {FilterValue(), 3});
  const auto cursor = ParsePageToken("other", token);
  EXPECT_THAT(cursor, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(cursor.status().GetPayload(kFieldPayloadUrl), "page_token");
}

TEST(PageTokenTest, DamagedTokensAreRefused) {
  const std::string token = FormatPageToken("list", {FilterValue(1.5), 3});
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    EXPECT_THAT(ParsePageToken("list", damaged),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(ParsePageToken("list", token.substr(0, i)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  for (const std::string& bad : {std::string("!!!"), std::string(5000, 'A'),
                                 token + "AAAA", std::string("\0", 1)}) {
    EXPECT_THAT(ParsePageToken("list", bad),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(PageTokenTest, RandomTokensNeverCrash) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string token;
    for (uint64_t j = rng.Below(60); j > 0; --j) {
      token += static_cast<char>(rng.Below(256));
    }
    EXPECT_THAT(ParsePageToken("list", token),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace cubicml
