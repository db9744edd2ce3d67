// SPDX-License-Identifier: Apache-2.0
//
// One line a fact, as key=value, to standard error or to a test's sink:
//   CUBICML_LOG(INFO) << "study created" << Field("study", name);

#ifndef CUBICML_BASE_LOG_H_
#define CUBICML_BASE_LOG_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace cubicml {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below this level are dropped. The default is kInfo. Thread-safe.
void SetLogLevel(LogLevel level);

// Where whole lines (without the newline) go; null means standard error.
// Thread-safe; the sink is called under a lock.
void SetLogSink(std::function<void(LogLevel, absl::string_view line)> sink);

// One key=value of a line; the value is quoted where it needs to be.
struct Field {
  Field(absl::string_view key_in, absl::string_view value_in);
  Field(absl::string_view key_in, double value_in);
  Field(absl::string_view key_in, int64_t value_in);
  std::string text;
};

// Collects a line and writes it when it dies.
class LogLine {
 public:
  LogLine(LogLevel level, const char* file, int line);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  LogLine& operator<<(absl::string_view text);
  LogLine& operator<<(const Field& field);

 private:
  const LogLevel level_;
  std::string message_;
  std::string fields_;
};

// The process cannot go on: a broken invariant of our own, never user input.
[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace cubicml

#define CUBICML_LOG_LEVEL_DEBUG ::cubicml::LogLevel::kDebug
#define CUBICML_LOG_LEVEL_INFO ::cubicml::LogLevel::kInfo
#define CUBICML_LOG_LEVEL_WARNING ::cubicml::LogLevel::kWarning
#define CUBICML_LOG_LEVEL_ERROR ::cubicml::LogLevel::kError
#define CUBICML_LOG(level) \
  ::cubicml::LogLine(CUBICML_LOG_LEVEL_##level, __FILE__, __LINE__)

#define CUBICML_CHECK(condition)                                              \
  do {                                                                        \
    if (!(condition)) ::cubicml::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

#endif  // CUBICML_BASE_LOG_H_
