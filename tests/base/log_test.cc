// SPDX-License-Identifier: Apache-2.0

#include "base/log.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

namespace cubicml {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    SetLogSink([this](LogLevel level, absl::string_view line) {
      levels_.push_back(level);
      lines_.emplace_back(line);
    });
  }
  ~LogTest() override {
    SetLogSink(nullptr);
    SetLogLevel(LogLevel::kInfo);
  }

  std::vector<LogLevel> levels_;
  std::vector<std::string> lines_;
};

TEST_F(LogTest, LineIsTimeLevelMessageAndFields) {
  CUBICML_LOG(INFO) << "study created" << Field("study", "studies/a")
                    << Field("trials", int64_t{3}) << Field("qps", 1.5);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0],
              MatchesRegex("time=[-0-9]+T[0-9:.]+Z level=info "
                           "msg=\"study created\" study=studies/a trials=3 "
                           "qps=1.5"));
}

TEST_F(LogTest, ValuesThatNeedItAreQuoted) {
  CUBICML_LOG(INFO) << "m" << Field("empty", "") << Field("space", "a b")
                    << Field("quote", "a\"b") << Field("equals", "a=b")
                    << Field("line", "a\nb") << Field("plain", "a-b/c:1");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0],
              EndsWith(" msg=m empty=\"\" space=\"a b\" quote=\"a\\\"b\" "
                       "equals=\"a=b\" line=\"a\\nb\" plain=a-b/c:1"));
}

TEST_F(LogTest, HostileTextStaysOnOneLine) {
  CUBICML_LOG(WARNING) << "x\nlevel=error msg=forged" << Field("f", "\r\n\xff");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find('\n'), std::string::npos);
  EXPECT_EQ(lines_[0].find('\r'), std::string::npos);
}

TEST_F(LogTest, LinesBelowTheLevelAreDropped) {
  CUBICML_LOG(DEBUG) << "no";
  SetLogLevel(LogLevel::kWarning);
  CUBICML_LOG(INFO) << "no";
  CUBICML_LOG(WARNING) << "yes";
  CUBICML_LOG(ERROR) << "yes";
  EXPECT_THAT(levels_, ElementsAre(LogLevel::kWarning, LogLevel::kError));
}

TEST_F(LogTest, DebugLinesSayWhereTheyComeFrom) {
  SetLogLevel(LogLevel::kDebug);
  CUBICML_LOG(DEBUG) << "here";
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("log_test.cc:"));
}

TEST(CheckTest, BrokenInvariantEndsTheProcessWithItsText) {
  EXPECT_DEATH(CUBICML_CHECK(1 + 1 == 3), "broken invariant: 1 \\+ 1 == 3");
  CUBICML_CHECK(true);
}

}  // namespace
}  // namespace cubicml
