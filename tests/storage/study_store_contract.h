// SPDX-License-Identifier: Apache-2.0
//
// What every StudyStore must do. A store is put to the test by
//   INSTANTIATE_TEST_SUITE_P(Mine, StudyStoreContractTest,
//                            ::testing::Values(StudyStoreFactory{...}),
//                            StudyStoreFactoryName);

#ifndef CUBICML_TESTS_STORAGE_STUDY_STORE_CONTRACT_H_
#define CUBICML_TESTS_STORAGE_STUDY_STORE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/study_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace cubicml {

// Of a request; only tests of the fingerprint name one.
inline RequestKey Key(const std::string& id, const std::string& method,
                      uint64_t fingerprint = 7) {
  return {id, method, fingerprint};
}

// Matches an error about this field of the request.
inline testing::Matcher<const absl::Status&> NamesField(
    const std::string& field) {
  return testing::ResultOf(FieldNamedBy, field);
}

struct StudyStoreFactory {
  std::string name;  // of the instance in test names
  // Makes an empty store with this clock. What it needs besides, such as a
  // folder, it owns.
  std::function<std::unique_ptr<StudyStore>(const Clock* clock)> make;
};

inline std::string StudyStoreFactoryName(
    const ::testing::TestParamInfo<StudyStoreFactory>& info) {
  return info.param.name;
}

class StudyStoreContractTest
    : public ::testing::TestWithParam<StudyStoreFactory> {
 protected:
  void SetUp() override {
    store_ = GetParam().make(&clock_);
    ASSERT_NE(store_, nullptr);
  }

  // The id of a new study studies/NAME that maximizes "qps".
  StudyId CreateStudy(absl::string_view id);
  // Creates `count` trials, and returns them.
  std::vector<v1::Trial> CreateTrials(StudyId study, int count);
  // Names of what all pages together hold, in order.
  std::vector<std::string> ListAllTrials(StudyId study,
                                         const std::string& filter,
                                         const std::string& order_by,
                                         int page_size);

  FakeClock clock_;
  std::unique_ptr<StudyStore> store_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_STORAGE_STUDY_STORE_CONTRACT_H_
