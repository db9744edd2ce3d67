// SPDX-License-Identifier: Apache-2.0
//
// The errors of the StudyStore contract in the words that every store uses.

#ifndef CUBICML_STORAGE_STORE_ERRORS_H_
#define CUBICML_STORAGE_STORE_ERRORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/field_error.h"
#include "base/strong_id.h"

namespace cubicml {

inline absl::Status StudyNotFoundError(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no study ", name));
}

inline absl::Status StudyNotFoundError(StudyId study) {
  return absl::NotFoundError(
      absl::StrCat("the study with id ", study.value, " is gone"));
}

inline absl::Status StudyExistsError(absl::string_view name) {
  return absl::AlreadyExistsError(absl::StrCat(name, " exists already"));
}

inline absl::Status StaleEtagError(absl::string_view name) {
  return absl::AbortedError(absl::StrCat(
      name, " has changed since that etag was read: read it again"));
}

inline absl::Status StudyInUseError(absl::string_view name, int64_t trials) {
  return absl::FailedPreconditionError(
      absl::StrCat(name, " has ", trials,
                   " trials that are ACTIVE or STOPPING: end them, or force"));
}

inline absl::Status TrialNotFoundError(StudyId study, TrialNumber number) {
  return absl::NotFoundError(absl::StrCat("there is no trial ", number.value,
                                          " in the study with id ",
                                          study.value));
}

inline absl::Status RequestIdTakenError(absl::string_view method) {
  return FieldError("request_id",
                    absl::StrCat("was used for another ", method, " call"));
}

// The trials that a request made went with their study.
inline absl::Status RequestTrialsGoneError() {
  return absl::NotFoundError(
      "the study of the trials that this request_id created is gone");
}

inline absl::Status ModelVersionError(int64_t version, int64_t latest) {
  return absl::AlreadyExistsError(absl::StrCat(
      "model version ", version, " is not above the last, ", latest));
}

inline absl::Status ModelNotFoundError(StudyId study) {
  return absl::NotFoundError(
      absl::StrCat("the study with id ", study.value, " has no model"));
}

// How many models of a study are kept.
inline constexpr int kKeptModels = 2;

}  // namespace cubicml

#endif  // CUBICML_STORAGE_STORE_ERRORS_H_
