// SPDX-License-Identifier: Apache-2.0

#include "base/field_error.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(FieldErrorTest, NamesTheFieldInTextAndPayload) {
  const absl::Status status = FieldError("parameters[2].min", "is too small");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "parameters[2].min: is too small"));
  EXPECT_EQ(status.GetPayload(kFieldPayloadUrl), "parameters[2].min");
}

}  // namespace
}  // namespace cubicml
