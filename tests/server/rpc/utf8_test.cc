// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace cubicml {
namespace {

TEST(Utf8Test, EveryLengthOfCharacterIsValid) {
  for (const absl::string_view text :
       {"", "plain", "caf\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x9A\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(ValidUtf8Prefix(text), text.size()) << text;
  }
}

TEST(Utf8Test, WhatRfc3629ForbidsEndsThePrefix) {
  for (const absl::string_view bad :
       {"\x80", "\xFF", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3",
        "\xE2\x82", "\xE2(\xAC", "\xF0\x9F\x9A"}) {
    EXPECT_EQ(ValidUtf8Prefix(std::string("ok") + std::string(bad)), 2u) << bad;
  }
}

TEST(Utf8Test, SanitizedTextIsValidAndKeepsWhatWasValid) {
  EXPECT_EQ(SanitizeText("a\xFF\xC3\xA9\xE2\x82", 100), "a?\xC3\xA9??");
  EXPECT_EQ(SanitizeText("", 100), "");
}

TEST(Utf8Test, ACutNeverSplitsACharacter) {
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
