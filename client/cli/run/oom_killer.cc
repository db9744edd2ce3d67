// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/oom_killer.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cubicml {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The number on the line "oom_kill N".
std::optional<int64_t> FindOomKills(const std::string& path) {
  const std::string text = ReadText(path);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t count = 0;
    if (words.size() == 2 && words[0] == "oom_kill" &&
        absl::SimpleAtoi(words[1], &count)) {
      return count;
    }
  }
  return std::nullopt;
}

}  // namespace

OomKillCounts OomKillCounts::Read(const std::string& root) {
  OomKillCounts counts;
  const std::string groups = ReadText(root + "/proc/self/cgroup");
  const std::string base = root + "/sys/fs/cgroup";
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    // hierarchy:controllers:path; v2 has no controllers.
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<std::string> files;
    if (parts[1].empty()) {
      files = {absl::StrCat(base, parts[2], "/memory.events"),
               // Within a container its own group is the root.
               absl::StrCat(base, "/memory.events")};
    } else if (absl::StrContains(parts[1], "memory")) {
      files = {absl::StrCat(base, "/memory", parts[2], "/memory.oom_control"),
               absl::StrCat(base, "/memory/memory.oom_control")};
    }
    for (const std::string& file : files) {
      if (const auto count = FindOomKills(file)) counts.group_[file] = *count;
    }
  }
  counts.machine_ = FindOomKills(root + "/proc/vmstat").value_or(0);
  return counts;
}

bool OomKillCounts::GroupHasGrownSince(const OomKillCounts& before) const {
  for (const auto& [file, count] : group_) {
    const auto earlier = before.group_.find(file);
    if (earlier != before.group_.end() && count > earlier->second) return true;
  }
  return false;
}

bool OomKillCounts::HasGrownSince(const OomKillCounts& before) const {
  return GroupHasGrownSince(before) || machine_ > before.machine_;
}

}  // namespace cubicml
