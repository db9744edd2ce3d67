// SPDX-License-Identifier: Apache-2.0

#include "server/core/resource_name.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/field_error.h"

namespace cubicml {
namespace {

constexpr size_t kMaxStudyIdBytes = 63;
// Anything longer is not a name; it is not worth taking apart.
constexpr size_t kMaxNameBytes = 128;

bool IsStudyId(absl::string_view id) {
  if (id.empty() || id.size() > kMaxStudyIdBytes) return false;
  if (!absl::ascii_islower(static_cast<unsigned char>(id[0]))) return false;
  for (char c : id) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(byte) && !absl::ascii_isdigit(byte) && c != '-') {
      return false;
    }
  }
  return true;
}

// A number has one way to be written, so that a trial has one name.
bool ParseNumber(absl::string_view text, int64_t* number) {
  if (text.empty() || text[0] < '1' || text[0] > '9') return false;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return absl::SimpleAtoi(text, number);
}

}  // namespace

absl::Status CheckStudyId(absl::string_view field, absl::string_view study_id) {
  if (IsStudyId(study_id)) return absl::OkStatus();
  return FieldError(field,
                    "must be a lower-case letter, then lower-case letters, "
                    "digits and hyphens, at most 63 characters");
}

absl::Status CheckStudyName(absl::string_view field, absl::string_view name) {
  if (name.size() <= kMaxNameBytes) {
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
    if (parts.size() == 2 && parts[0] == "studies" && IsStudyId(parts[1])) {
      return absl::OkStatus();
    }
  }
  return FieldError(field, "must be studies/{study}");
}

absl::StatusOr<TrialName> ParseTrialName(absl::string_view field,
                                         absl::string_view name) {
  if (name.size() <= kMaxNameBytes) {
    const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
    TrialName result;
    if (parts.size() == 4 && parts[0] == "studies" && IsStudyId(parts[1]) &&
        parts[2] == "trials" && ParseNumber(parts[3], &result.number.value)) {
      result.study = FormatStudyName(parts[1]);
      return result;
    }
  }
  return FieldError(field, "must be studies/{study}/trials/{number}");
}

std::string FormatStudyName(absl::string_view study_id) {
  return absl::StrCat("studies/", study_id);
}

std::string FormatTrialName(absl::string_view study_name, TrialNumber number) {
  return absl::StrCat(study_name, "/trials/", number.value);
}

absl::Status WithTrialName(const absl::Status& status,
                           absl::string_view study_name, TrialNumber number) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat(FormatTrialName(study_name, number), " does not exist"));
}

}  // namespace cubicml
