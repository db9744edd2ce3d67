// SPDX-License-Identifier: Apache-2.0
//
// Studies and trials with something in most fields, for tests of stores.

#ifndef CUBICML_TESTS_STORAGE_EXAMPLE_RESOURCES_H_
#define CUBICML_TESTS_STORAGE_EXAMPLE_RESOURCES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"
#include "storage/study_store.h"

namespace cubicml {

// A study studies/ID that maximizes "qps", with something in most fields.
v1::Study ExampleStudy(absl::string_view id);
// A trial as a suggestion makes it, different for each seed.
v1::Trial ExampleTrial(uint64_t seed);
// The number at the end of a trial's name.
int64_t NumberOf(const v1::Trial& trial);
// A mutation that makes the trial SUCCEEDED with this "qps".
StudyStore::TrialMutation SucceedWith(double qps);

}  // namespace cubicml

#endif  // CUBICML_TESTS_STORAGE_EXAMPLE_RESOURCES_H_
