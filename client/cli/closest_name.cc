// SPDX-License-Identifier: Apache-2.0

#include "client/cli/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cubicml {
namespace {

constexpr size_t kMaxListed = 12;
constexpr size_t kMinPrefix = 3;

// Levenshtein's distance.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// "default_value" for "default", and "int" for "integer".
bool OneStartsWithTheOther(absl::string_view a, absl::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  return shorter >= kMinPrefix && a.substr(0, shorter) == b.substr(0, shorter);
}

}  // namespace

std::string SuggestName(absl::string_view word,
                        std::span<const absl::string_view> names) {
  absl::string_view best;
  // Two letters of a short word are half of it.
  const size_t few = word.size() < 4 ? 1 : 2;
  size_t best_distance = std::max(few, word.size() / 3) + 1;
  for (const absl::string_view name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  for (const absl::string_view name : names) {
    if (best.empty() && OneStartsWithTheOther(word, name)) best = name;
  }
  if (!best.empty()) return absl::StrCat("; did you mean '", best, "'?");
  if (names.empty() || names.size() > kMaxListed) return "";
  return absl::StrCat("; it is one of ", absl::StrJoin(names, ", "));
}

}  // namespace cubicml
