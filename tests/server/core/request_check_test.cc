// SPDX-License-Identifier: Apache-2.0

#include "server/core/request_check.h"

#include <string>

#include "absl/strings/cord.h"
#include "base/field_error.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(RequestCheckTest, TheFingerprintIsOfTheRequestWithoutItsId) {
  v1::SuggestTrialsRequest request;
  request.set_parent("studies/a");
  for (int i = 0; i < 20; ++i) {
    (*request.mutable_labels())["key" + std::to_string(i)] = "value";
  }
  request.set_request_id("one");
  const auto first = ParseRequestKey("SuggestTrials", "one", request);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->id, "one");
  EXPECT_EQ(first->method, "SuggestTrials");
  // The order in which a map was filled says nothing.
  v1::SuggestTrialsRequest other;
  other.set_parent("studies/a");
  for (int i = 19; i >= 0; --i) {
    (*other.mutable_labels())["key" + std::to_string(i)] = "value";
  }
  other.set_request_id("two");
  const auto second = ParseRequestKey("SuggestTrials", "two", other);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->fingerprint, first->fingerprint);
  other.set_count(2);
  EXPECT_NE(ParseRequestKey("SuggestTrials", "two", other)->fingerprint,
            first->fingerprint);
}

TEST(RequestCheckTest, ARequestIdIsShortAndPrintable) {
  const v1::CancelTrialRequest request;
  EXPECT_TRUE(ParseRequestKey("CancelTrial", "", request)->id.empty());
  EXPECT_THAT(ParseRequestKey("CancelTrial", std::string(64, 'x'), request),
              IsOk());
  for (const std::string& id :
       {std::string(65, 'x'), std::string("a\n"), std::string("\xc3\xa9"),
        std::string("a\0", 2)}) {
    EXPECT_THAT(ParseRequestKey("CancelTrial", id, request),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(RequestCheckTest, APrefixGoesToTheMessageAndToTheField) {
  const absl::Status status =
      WithFieldPrefix(FieldError("parameters[0].name", "is empty"), "study.");
  EXPECT_EQ(status.message(), "study.parameters[0].name: is empty");
  const auto field = status.GetPayload(kFieldPayloadUrl);
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ(std::string(*field), "study.parameters[0].name");
  EXPECT_THAT(WithFieldPrefix(absl::OkStatus(), "study."), IsOk());
  EXPECT_EQ(WithFieldPrefix(absl::InternalError("x"), "study.").message(), "x");
}

}  // namespace
}  // namespace cubicml
