// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/resource_names.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cubicml {
namespace {

// The rule of study.proto, so that a typing mistake is told without a server.
bool IsStudyId(absl::string_view id) {
  return !id.empty() && id.size() <= 63 && id.front() >= 'a' &&
         id.front() <= 'z' &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
             absl::string_view::npos;
}

}  // namespace

absl::StatusOr<std::string> ParseStudyName(absl::string_view text) {
  const absl::string_view id = absl::StripPrefix(text, "studies/");
  if (!IsStudyId(id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is not the name of a study: lower-case letters, digits and "
        "hyphens, starting with a letter, at most 63 characters"));
  }
  return absl::StrCat("studies/", id);
}

absl::StatusOr<std::string> ParseTrialName(absl::string_view text) {
  std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() == 4 && parts[0] == "studies" && parts[2] == "trials") {
    parts = {parts[1], parts[3]};
  }
  int64_t number = 0;
  if (parts.size() != 2 || !IsStudyId(parts[0]) ||
      !absl::SimpleAtoi(parts[1], &number) || number < 1 ||
      absl::StrCat(number) != parts[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "' is not the name of a trial: STUDY/NUMBER or "
                     "studies/STUDY/trials/NUMBER"));
  }
  return absl::StrCat("studies/", parts[0], "/trials/", number);
}

std::string StudyIdOf(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return parts.size() >= 2 && parts[0] == "studies" ? std::string(parts[1])
                                                    : "";
}

int64_t TrialNumberOf(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  int64_t number = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[3], &number)) return 0;
  return number;
}

}  // namespace cubicml
