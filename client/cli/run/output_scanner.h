// SPDX-License-Identifier: Apache-2.0
//
// Finds metrics and signs of exhausted memory in the output of a job, while it
// is passed through.

#ifndef CUBICML_CLIENT_CLI_RUN_OUTPUT_SCANNER_H_
#define CUBICML_CLIENT_CLI_RUN_OUTPUT_SCANNER_H_

#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

enum class Aggregate { kLast, kMean, kMax, kMin };
absl::StatusOr<Aggregate> ParseAggregate(absl::string_view word);

// The values of one metric, in the order in which they came. A value type.
class MetricSeries {
 public:
  void Add(double value);
  // Nothing when there is no value, or when the outcome is not finite. Values
  // that are not finite count for `last` and `mean`, and not for the others: a
  // loss that ends as NaN has not been measured.
  std::optional<double> Get(Aggregate aggregate) const;
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
  double last_ = 0;
  double sum_ = 0;
  std::optional<double> max_;
  std::optional<double> min_;
};

// What was seen in all streams of one job.
struct Observations {
  std::map<std::string, MetricSeries> metrics;
  // The first line that says that memory was exhausted, shortened.
  std::string out_of_memory;
  // The first line that says that a process of the job was killed, shortened.
  std::string killed_process;
};

// What to look for. Immutable and thread-safe.
class OutputPatterns {
 public:
  // Declared metrics are found as NAME=NUMBER or NAME: NUMBER, also in JSON. A
  // regular expression (RE2) replaces that for its metrics: those of its named
  // groups (?P<NAME>...); with one unnamed group, the metric that the
  // expression begins with, or else the first declared one. INVALID_ARGUMENT
  // for an expression that is none, has no group, or names an unknown metric.
  // Without declared metrics nothing is known, and any name will do.
  static absl::StatusOr<OutputPatterns> Create(
      const std::vector<std::string>& metrics,
      const std::vector<std::string>& expressions);

  // Looks at one line without its end.
  void ScanLine(absl::string_view line, Observations* seen) const;

 private:
  struct Pattern {
    std::unique_ptr<const RE2> expression;
    std::vector<std::string> groups;  // metric of each group, "" for none
    bool generic = false;  // NAME=NUMBER, with a number that must end there
  };
  absl::Status AddExpression(const std::string& text,
                             const std::vector<std::string>& metrics);
  std::vector<Pattern> patterns_;
  std::unique_ptr<const RE2> out_of_memory_;
  std::unique_ptr<const RE2> killed_process_;
};

// Cuts a stream into lines, at \n and \r (progress bars). A line longer than
// kMaxLine is looked at in pieces. Not thread-safe.
class OutputScanner {
 public:
  static constexpr size_t kMaxLine = 1 << 16;

  // Both must outlive the scanner.
  OutputScanner(const OutputPatterns* patterns, Observations* seen)
      : patterns_(patterns), seen_(seen) {}

  void Feed(absl::string_view chunk);
  // The end of the stream: looks at a last line without an end.
  void Finish();

 private:
  const OutputPatterns* const patterns_;
  Observations* const seen_;
  std::string line_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_OUTPUT_SCANNER_H_
