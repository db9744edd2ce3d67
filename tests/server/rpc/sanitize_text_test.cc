// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/sanitize_text.h"

#include <string>

#include "base/utf8.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

TEST(SanitizeTextTest, SanitizedTextIsValidAndKeepsWhatWasValid) {
  EXPECT_EQ(SanitizeText("a\xFF\xC3\xA9\xE2\x82", 100), "a?\xC3\xA9??");
  EXPECT_EQ(SanitizeText("", 100), "");
}

TEST(SanitizeTextTest, ACutNeverSplitsACharacter) {
  const std::string text = "aaaa\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC";
  for (size_t limit = 0; limit <= text.size() + 1; ++limit) {
    const std::string cut = SanitizeText(text, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_EQ(ValidUtf8Prefix(cut), cut.size()) << limit;
  }
  EXPECT_EQ(SanitizeText(text, text.size()), text);
  EXPECT_EQ(SanitizeText(text, 10), "aaaa\xE2\x82\xAC...");
}

}  // namespace
}  // namespace cubicml
