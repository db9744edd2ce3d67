// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/output_scanner.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// What is seen in `text`, fed in pieces of `piece` bytes.
Observations Scan(const std::string& text, size_t piece,
                  const std::vector<std::string>& metrics,
                  const std::vector<std::string>& expressions = {}) {
  const absl::StatusOr<OutputPatterns> patterns =
      OutputPatterns::Create(metrics, expressions);
  EXPECT_THAT(patterns, IsOk());
  Observations seen;
  OutputScanner scanner(&*patterns, &seen);
  for (size_t i = 0; i < text.size(); i += piece) {
    scanner.Feed(absl::string_view(text).substr(i, piece));
  }
  scanner.Finish();
  return seen;
}

std::optional<double> LastQps(
    const std::string& text, const std::vector<std::string>& expressions = {}) {
  return Scan(text, text.size() + 1, {"qps", "memory"}, expressions)
      .metrics["qps"]
      .Get(Aggregate::kLast);
}

TEST(OutputScannerTest, DeclaredMetricsAreFoundByName) {
  EXPECT_THAT(LastQps("qps=123.5\n"), Optional(123.5));
  EXPECT_THAT(LastQps("step 5, qps = 1e3 samples/s"), Optional(1000.0));
  EXPECT_THAT(LastQps("qps: 7"), Optional(7.0));
  EXPECT_THAT(LastQps(R"({"qps": 12, "memory": 5})"), Optional(12.0));
  EXPECT_THAT(LastQps("qps=1 qps=2,qps=3"), Optional(3.0));
  EXPECT_THAT(LastQps("memory=3\tqps=-.5"), Optional(-0.5));
}

TEST(OutputScannerTest, OtherWordsAreNotTheMetric) {
  for (const char* text : {"xqps=1", "max_qps=1", "qps2=1", "qps=fast",
                           "train.qps=1", "qps=1st", "qps 5"}) {
    EXPECT_EQ(LastQps(text), std::nullopt) << text;
  }
}

TEST(OutputScannerTest, APartOfANumberIsNone) {
  for (const char* text :
       {"qps=12.3k", "qps: 1.5M", "qps=1.5e3s", "qps: 12,345.6", "qps=1,234",
        "qps=1.2.3", "qps=0x1f", "qps=1e", "qps=nano", "qps=5_000"}) {
    EXPECT_EQ(LastQps(text), std::nullopt) << text;
  }
  EXPECT_THAT(LastQps("qps=123 samples/s"), Optional(123.0));
  EXPECT_THAT(LastQps("qps=123.4,loss=0.5"), Optional(123.4));
  EXPECT_THAT(LastQps("qps=123.4, 100 steps"), Optional(123.4));
  EXPECT_THAT(LastQps("qps: 12."), Optional(12.0));
  EXPECT_THAT(LastQps("The end: qps: 12.5."), Optional(12.5));
  EXPECT_THAT(LastQps(R"({"qps": "12", "n": 100})"), Optional(12.0));
  EXPECT_THAT(LastQps("qps=12.3k qps=7"), Optional(7.0));
}

TEST(OutputScannerTest, ChunksMayEndAnywhere) {
  const std::string text = "start\nqps=1\nnoise\rqps=23.5\r\nmemory=4 qps=67";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    Observations seen = Scan(text, piece, {"qps", "memory"});
    EXPECT_EQ(seen.metrics["qps"].count(), 3) << piece;
    EXPECT_THAT(seen.metrics["qps"].Get(Aggregate::kLast), Optional(67.0));
    EXPECT_THAT(seen.metrics["memory"].Get(Aggregate::kLast), Optional(4.0));
  }
}

TEST(OutputScannerTest, BinaryNoiseAndEndlessLinesAreBounded) {
  std::string noise(3 * OutputScanner::kMaxLine, '\0');
  noise += "\nqps=5\n";
  EXPECT_THAT(LastQps(noise), Optional(5.0));
}

TEST(OutputScannerTest, ValuesAreAggregated) {
  Observations seen = Scan("qps=1\nqps=5\nqps=3\n", 4, {"qps"});
  const MetricSeries& series = seen.metrics["qps"];
  EXPECT_THAT(series.Get(Aggregate::kLast), Optional(3.0));
  EXPECT_THAT(series.Get(Aggregate::kMean), Optional(3.0));
  EXPECT_THAT(series.Get(Aggregate::kMax), Optional(5.0));
  EXPECT_THAT(series.Get(Aggregate::kMin), Optional(1.0));
}

TEST(OutputScannerTest, WhatEndsAsNanIsNotMeasured) {
  Observations seen = Scan("qps=1\nqps=nan\n", 4, {"qps"});
  EXPECT_EQ(seen.metrics["qps"].Get(Aggregate::kLast), std::nullopt);
  EXPECT_EQ(seen.metrics["qps"].Get(Aggregate::kMean), std::nullopt);
  EXPECT_THAT(seen.metrics["qps"].Get(Aggregate::kMax), Optional(1.0));
}

TEST(OutputScannerTest, AnExpressionReplacesTheDefault) {
  EXPECT_THAT(LastQps("speed 12 it/s\nqps=3", {"speed ([0-9.]+)"}),
              Optional(12.0));
  EXPECT_THAT(LastQps("qps=(4)", {R"(qps=\(([0-9.]+)\))"}), Optional(4.0));
}

TEST(OutputScannerTest, GroupsAndBeginningsNameTheirMetric) {
  Observations named = Scan("9 qps at 5 MiB", 3, {"qps", "memory"},
                            {R"((?P<qps>\d+) qps at (?P<memory>\d+) MiB)"});
  EXPECT_THAT(named.metrics["qps"].Get(Aggregate::kLast), Optional(9.0));
  EXPECT_THAT(named.metrics["memory"].Get(Aggregate::kLast), Optional(5.0));
  Observations begun =
      Scan("memory used 5", 3, {"qps", "memory"}, {R"(memory used (\d+))"});
  EXPECT_THAT(begun.metrics["memory"].Get(Aggregate::kLast), Optional(5.0));
}

TEST(OutputScannerTest, BadExpressionsAreRefused) {
  const auto error = [](const char* expression) {
    return std::string(
        OutputPatterns::Create({"qps"}, {expression}).status().message());
  };
  EXPECT_THAT(error("qps=([0-9"), HasSubstr("missing"));
  EXPECT_THAT(error("qps=[0-9]+"), HasSubstr("needs one group"));
  EXPECT_THAT(error("(a)(b)"), HasSubstr("needs one group"));
  EXPECT_THAT(error("(?P<qpz>.)"), HasSubstr("did you mean 'qps'?"));
}

TEST(OutputScannerTest, KnownMessagesOfExhaustedMemoryAreSeen) {
  for (const char* line :
       {"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "MemoryError", "MemoryError: Unable to allocate 8 GiB",
        "Out of memory: Killed process 123 (python)",
        "slurmstepd: error: Detected 1 oom-kill event(s)",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
        "mmap: Cannot allocate memory",
        "dlrm_train: cannot allocate memory: Resource temporarily "
        "unavailable"}) {
    EXPECT_EQ(Scan(std::string(line) + "\n", 7, {}).out_of_memory, line);
  }
}

TEST(OutputScannerTest, ALaunchersWordOfAKilledProcessIsSeen) {
  for (const char* line :
       {"E torch/distributed/elastic: failed (exitcode: -9) local_rank: 0",
        "  exitcode  : -9 (pid: 4711)",
        "  traceback : Signal 9 (SIGKILL) received by PID 4711"}) {
    EXPECT_EQ(Scan(line, 7, {}).killed_process, line);
  }
  for (const char* line : {"exitcode: -90", "exitcode: 1", "Signal 15"}) {
    EXPECT_EQ(Scan(line, 7, {}).killed_process, "") << line;
  }
}

TEST(OutputScannerTest, TalkOfMemoryIsNoSign) {
  for (const char* line : {"using the OutOfMemory handler", "memory: 5 GiB",
                           "no MemoryErrors", "out of memory of the past"}) {
    EXPECT_EQ(Scan(line, 7, {}).out_of_memory, "") << line;
  }
}

}  // namespace
}  // namespace cubicml
