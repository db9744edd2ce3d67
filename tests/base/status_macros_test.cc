// SPDX-License-Identifier: Apache-2.0

#include "base/status_macros.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

absl::StatusOr<int> Parse(bool ok, int* calls) {
  ++*calls;
  if (!ok) return absl::NotFoundError("none");
  return 7;
}

absl::Status Use(bool ok, int* calls, int* out) {
  CUBICML_ASSIGN_OR_RETURN(const int first, Parse(ok, calls));
  CUBICML_ASSIGN_OR_RETURN(*out, Parse(ok, calls));
  *out += first;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, AssignOrReturnEvaluatesOnceAndAssigns) {
  int calls = 0;
  int out = 0;
  CUBICML_EXPECT_OK(Use(true, &calls, &out));
  EXPECT_EQ(out, 14);
  EXPECT_EQ(calls, 2);
}

TEST(StatusMacrosTest, AssignOrReturnReturnsTheFirstError) {
  int calls = 0;
  int out = 5;
  EXPECT_THAT(Use(false, &calls, &out),
              StatusIs(absl::StatusCode::kNotFound, "none"));
  EXPECT_EQ(out, 5);
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacrosTest, AssignOrReturnMovesWhatCannotBeCopied) {
  const auto take = []() -> absl::StatusOr<std::unique_ptr<int>> {
    CUBICML_ASSIGN_OR_RETURN(
        std::unique_ptr<int> value,
        absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(3)));
    return value;
  };
  EXPECT_THAT(take(), IsOkAndHolds(testing::Pointee(3)));
}

TEST(StatusMacrosTest, ReturnIfErrorEvaluatesOnceAndGoesOnWhenOk) {
  int calls = 0;
  const auto run = [&calls](bool ok) -> absl::Status {
    CUBICML_RETURN_IF_ERROR(Parse(ok, &calls).status());
    return absl::CancelledError("went on");
  };
  EXPECT_THAT(run(true), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(run(false), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(calls, 2);
}

TEST(WithContextTest, AddsAPrefixAndKeepsCodeAndPayloads) {
  absl::Status status = absl::AbortedError("stale");
  status.SetPayload("url", absl::Cord("bytes"));
  const absl::Status with = WithContext(status, "deleting a study");
  EXPECT_THAT(with,
              StatusIs(absl::StatusCode::kAborted, "deleting a study: stale"));
  EXPECT_EQ(with.GetPayload("url"), "bytes");
  CUBICML_EXPECT_OK(WithContext(absl::OkStatus(), "x"));
}

}  // namespace
}  // namespace cubicml
