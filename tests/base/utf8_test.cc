// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.h"

#include <string>

#include "base/rng.h"
#include "cubicml/v1/study.pb.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

TEST(Utf8Test, AcceptsEveryLengthAndRefusesEveryKindOfFault) {
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_TRUE(IsValidUtf8(std::string("a\0b", 3)));
  EXPECT_TRUE(IsValidUtf8("\xc2\x80 \xe0\xa0\x80 \xf0\x90\x80\x80"));
  EXPECT_TRUE(IsValidUtf8("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"));
  for (const char* bad :
       {"\x80", "\xff", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41",
        "\xe0\x9f\xbf", "\xe1\x80", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x90\x80"}) {
    EXPECT_FALSE(IsValidUtf8(bad));
  }
}

// What it lets through is exactly what a proto can be read back with.
TEST(Utf8Test, AgreesWithTheParserOfProtobuf) {
  Rng rng(9);
  const std::string alphabet =
      "a\x80\x8f\x90\x9f\xa0\xbf\xc2\xe0\xe1\xed\xf0\xf4";
  int valid = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (uint64_t j = rng.Below(5); j > 0; --j) {
      text += alphabet[rng.Below(alphabet.size())];
    }
    // The wire format by hand: serializing would complain on standard error.
    const std::string wire =
        std::string("\x0a") + static_cast<char>(text.size()) + text;
    v1::Trial trial;
    if (IsValidUtf8(text)) {
      ++valid;
      EXPECT_TRUE(trial.ParseFromString(wire));
      EXPECT_EQ(trial.name(), text);
    }
  }
  EXPECT_GT(valid, 100);
}

TEST(Utf8Test, PrefixEndsBeforeTheFirstFault) {
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix("ab"), 2u);
  EXPECT_EQ(ValidUtf8Prefix("\xc2\x80z\xff\x80"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("a\xe0\xa0"), 1u);
}

}  // namespace
}  // namespace cubicml
