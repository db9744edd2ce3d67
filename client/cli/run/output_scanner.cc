// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/output_scanner.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"

namespace cubicml {
namespace {

// CUDA and HIP allocators of PyTorch, its allocator for processors, JAX, C++,
// Python, and what launchers print of the kernel's killer.
constexpr char kOutOfMemory[] =
    R"re(CUDA out of memory|HIP out of memory|OutOfMemoryError|)re"
    R"re(CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|)re"
    R"re(CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|)re"
    R"re(DefaultCPUAllocator: (?:can't allocate|not enough) memory|)re"
    R"re(std::bad_alloc|(?:^|\s)MemoryError(?:$|[:\s])|)re"
    R"re([Oo]ut of memory: Kill(?:ed)? process|oom-kill|OOM Killed|)re"
    R"re([Cc]annot allocate memory)re";

// What torchrun prints of a worker that died of SIGKILL.
constexpr char kKilledProcess[] =
    R"re(exitcode *: -9(?:$|[^0-9])|Signal 9 \(SIGKILL\))re";

constexpr char kNumberExpression[] =
    R"re(([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|NaN|inf|Infinity)))re";

constexpr size_t kMaxDetail = 300;

std::string GenericExpression(const std::string& metric) {
  // The name is not a part of another one.
  return absl::StrCat(R"re((?:^|[^A-Za-z0-9_.]))re", RE2::QuoteMeta(metric),
                      R"re(["']?\s*[=:]\s*["']?)re", kNumberExpression);
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Is a number before `rest` a whole one? Not "12" of "12k", "12.3.4" or
// "12,345".
bool EndsNumber(absl::string_view rest) {
  if (absl::StartsWith(rest, ".")) rest.remove_prefix(1);  // of a sentence
  if (rest.empty()) return true;
  if (rest[0] == ',') {
    const absl::string_view group = rest.substr(1, 3);
    return group.size() < 3 ||
           !std::all_of(group.begin(), group.end(), IsDigit);
  }
  return !absl::ascii_isalnum(static_cast<unsigned char>(rest[0])) &&
         rest[0] != '_' && rest[0] != '.';
}

re2::StringPiece ToPiece(absl::string_view text) {
  return re2::StringPiece(text.data(), text.size());
}

std::unique_ptr<RE2> Compile(const std::string& expression) {
  RE2::Options options;
  options.set_log_errors(false);
  // Output may be of any encoding.
  options.set_encoding(RE2::Options::EncodingLatin1);
  return std::make_unique<RE2>(expression, options);
}

void NoteFirst(absl::string_view line, const RE2& expression,
               std::string* first) {
  if (first->empty() && RE2::PartialMatch(ToPiece(line), expression)) {
    *first = std::string(line.substr(0, kMaxDetail));
  }
}

// The metric that an expression without named groups is about.
std::string MetricOf(const std::string& expression,
                     const std::vector<std::string>& metrics) {
  std::string found = metrics.empty() ? "" : metrics[0];
  size_t length = 0;
  for (const std::string& metric : metrics) {
    if (absl::StartsWith(expression, metric) && metric.size() > length) {
      found = metric;
      length = metric.size();
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<Aggregate> ParseAggregate(absl::string_view word) {
  if (word == "last") return Aggregate::kLast;
  if (word == "mean") return Aggregate::kMean;
  if (word == "max") return Aggregate::kMax;
  if (word == "min") return Aggregate::kMin;
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is not one of last, mean, max, min"));
}

void MetricSeries::Add(double value) {
  ++count_;
  last_ = value;
  sum_ += value;
  if (!std::isfinite(value)) return;
  max_ = std::max(max_.value_or(value), value);
  min_ = std::min(min_.value_or(value), value);
}

std::optional<double> MetricSeries::Get(Aggregate aggregate) const {
  if (count_ == 0) return std::nullopt;
  std::optional<double> value;
  switch (aggregate) {
    case Aggregate::kLast:
      value = last_;
      break;
    case Aggregate::kMean:
      value = sum_ / static_cast<double>(count_);
      break;
    case Aggregate::kMax:
      value = max_;
      break;
    case Aggregate::kMin:
      value = min_;
      break;
  }
  if (value.has_value() && !std::isfinite(*value)) return std::nullopt;
  return value;
}

absl::StatusOr<OutputPatterns> OutputPatterns::Create(
    const std::vector<std::string>& metrics,
    const std::vector<std::string>& expressions) {
  OutputPatterns result;
  for (const std::string& expression : expressions) {
    CUBICML_RETURN_IF_ERROR(
        WithContext(result.AddExpression(expression, metrics),
                    absl::StrCat("--metric-regex '", expression, "'")));
  }
  std::set<std::string> covered;
  for (const Pattern& pattern : result.patterns_) {
    covered.insert(pattern.groups.begin(), pattern.groups.end());
  }
  for (const std::string& metric : metrics) {
    if (covered.count(metric) > 0) continue;
    result.patterns_.push_back(
        {Compile(GenericExpression(metric)), {"", metric}, true});
  }
  result.out_of_memory_ = Compile(kOutOfMemory);
  result.killed_process_ = Compile(kKilledProcess);
  return result;
}

absl::Status OutputPatterns::AddExpression(
    const std::string& text, const std::vector<std::string>& metrics) {
  std::unique_ptr<RE2> expression = Compile(text);
  if (!expression->ok()) {
    return absl::InvalidArgumentError(expression->error());
  }
  const int count = expression->NumberOfCapturingGroups();
  std::vector<std::string> groups(static_cast<size_t>(count) + 1);
  for (const auto& [index, name] : expression->CapturingGroupNames()) {
    const std::vector<absl::string_view> known(metrics.begin(), metrics.end());
    if (!metrics.empty() &&
        std::find(metrics.begin(), metrics.end(), name) == metrics.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is no metric of the study", SuggestName(name, known)));
    }
    groups[static_cast<size_t>(index)] = name;
  }
  if (expression->CapturingGroupNames().empty()) {
    if (count != 1) {
      return absl::InvalidArgumentError(
          "needs one group around the number, or named groups such as "
          "(?P<qps>[0-9.]+)");
    }
    groups[1] = MetricOf(text, metrics);
  }
  patterns_.push_back({std::move(expression), std::move(groups), false});
  return absl::OkStatus();
}

void OutputPatterns::ScanLine(absl::string_view line,
                              Observations* seen) const {
  std::vector<re2::StringPiece> found;
  for (const Pattern& pattern : patterns_) {
    found.resize(pattern.groups.size());
    const re2::StringPiece text = ToPiece(line);
    size_t start = 0;
    while (start <= text.size() &&
           pattern.expression->Match(text, start, text.size(), RE2::UNANCHORED,
                                     found.data(),
                                     static_cast<int>(found.size()))) {
      const size_t end =
          static_cast<size_t>(found[0].data() - text.data()) + found[0].size();
      const bool whole = !pattern.generic || EndsNumber(line.substr(end));
      for (size_t i = 1; whole && i < found.size(); ++i) {
        double value = 0;
        if (pattern.groups[i].empty() || found[i].data() == nullptr ||
            !absl::SimpleAtod(
                absl::string_view(found[i].data(), found[i].size()), &value)) {
          continue;
        }
        seen->metrics[pattern.groups[i]].Add(value);
      }
      // The last character of a match may be the first of the next one.
      start = std::max(start + 1, found[0].size() > 1 ? end - 1 : end);
    }
  }
  NoteFirst(line, *out_of_memory_, &seen->out_of_memory);
  NoteFirst(line, *killed_process_, &seen->killed_process);
}

void OutputScanner::Feed(absl::string_view chunk) {
  while (!chunk.empty()) {
    const size_t end = chunk.find_first_of("\r\n");
    const absl::string_view part = chunk.substr(0, end);
    line_.append(part.data(), part.size());
    if (end == absl::string_view::npos) {
      if (line_.size() > kMaxLine) Finish();
      return;
    }
    Finish();
    chunk.remove_prefix(end + 1);
  }
}

void OutputScanner::Finish() {
  if (!line_.empty()) patterns_->ScanLine(line_, seen_);
  line_.clear();
}

}  // namespace cubicml
