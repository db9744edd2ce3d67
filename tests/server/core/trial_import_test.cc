// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_import.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/service_fixture.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

v1::Trial TrialOfContext(int64_t job) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  (*trial.mutable_parameters())["x"] = IntegerValue(1);
  (*trial.mutable_parameters())["y"] = IntegerValue(2);
  (*trial.mutable_context())["job"] = IntegerValue(job);
  (*trial.mutable_metrics())["score"] = 1.0;
  return trial;
}

TEST(ImportCheckTest, ContextsAreBounded) {
  v1::Study study = PlainStudy();
  study.set_name("studies/a");
  v1::ContextField& job = *study.add_context();
  job.set_name("job");
  job.set_type(v1::INTEGER);
  const auto definition = StudyDefinition::Parse(study);
  ASSERT_THAT(definition, IsOk());
  FakeClock clock;
  StudyState state(StudyId{1}, *definition, &clock);
  ImportCheck check(&state);
  v1::Trial trial = TrialOfContext(0);
  for (size_t i = 0; i < kMaxContexts; ++i) {
    (*trial.mutable_context())["job"] = IntegerValue(static_cast<int64_t>(i));
    ASSERT_THAT(check.Check(trial, clock.Now()), IsOk());
  }
  EXPECT_THAT(check.Check(TrialOfContext(-1), clock.Now()),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("different contexts")));
  EXPECT_THAT(check.Check(TrialOfContext(0), clock.Now()), IsOk());
  EXPECT_EQ(state.Contexts().size(), kMaxContexts);
}

}  // namespace
}  // namespace cubicml
