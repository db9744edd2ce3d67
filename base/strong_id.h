// SPDX-License-Identifier: Apache-2.0
//
// Integers that mean different things have different types.

#ifndef CUBICML_BASE_STRONG_ID_H_
#define CUBICML_BASE_STRONG_ID_H_

#include <compare>
#include <cstdint>

namespace cubicml {

template <typename Tag>
struct StrongId {
  int64_t value = 0;
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

// Row id of a study; never used again after the study is deleted.
using StudyId = StrongId<struct StudyIdTag>;
// Number of a trial within its study, from 1.
using TrialNumber = StrongId<struct TrialNumberTag>;
// Version of a study's model, from 1.
using ModelVersion = StrongId<struct ModelVersionTag>;

}  // namespace cubicml

#endif  // CUBICML_BASE_STRONG_ID_H_
