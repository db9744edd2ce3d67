// SPDX-License-Identifier: Apache-2.0

#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace cubicml {
namespace {

struct Sink {
  Mutex mu;
  std::function<void(LogLevel, absl::string_view)> write ABSL_GUARDED_BY(mu);
};

// Never destroyed: threads may log until the very end.
Sink& GetSink() {
  static Sink* const sink = new Sink;
  return *sink;
}

std::atomic<LogLevel> min_level{LogLevel::kInfo};

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::string Quote(absl::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) {
    plain = plain && absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
            c != '"' && c != '=';
  }
  if (plain) return std::string(value);
  return absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\"");
}

}  // namespace

void SetLogLevel(LogLevel level) { min_level = level; }

void SetLogSink(std::function<void(LogLevel, absl::string_view line)> sink) {
  MutexLock lock(&GetSink().mu);
  GetSink().write = std::move(sink);
}

Field::Field(absl::string_view key_in, absl::string_view value_in)
    : text(absl::StrCat(key_in, "=", Quote(value_in))) {}
Field::Field(absl::string_view key_in, double value_in)
    : text(absl::StrCat(key_in, "=", value_in)) {}
Field::Field(absl::string_view key_in, int64_t value_in)
    : text(absl::StrCat(key_in, "=", value_in)) {}

LogLine::LogLine(LogLevel level, const char* file, int line) : level_(level) {
  if (level == LogLevel::kDebug) {
    fields_ = absl::StrCat(" source=", file, ":", line);
  }
}

LogLine::~LogLine() {
  if (level_ < min_level) return;
  const std::string line = absl::StrCat(
      "time=",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                       absl::UTCTimeZone()),
      " level=", LevelName(level_), " msg=", Quote(message_), fields_);
  MutexLock lock(&GetSink().mu);
  if (GetSink().write) {
    GetSink().write(level_, line);
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

LogLine& LogLine::operator<<(absl::string_view text) {
  absl::StrAppend(&message_, text);
  return *this;
}

LogLine& LogLine::operator<<(const Field& field) {
  absl::StrAppend(&fields_, " ", field.text);
  return *this;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace cubicml
