// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/wire_message.h"

#include <string>

#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

class WireMessageTest : public ::testing::Test {
 protected:
  WireMessageTest() { RouteProtobufLog(); }
};

v1::CreateStudyRequest Request() {
  v1::CreateStudyRequest request;
  request.set_study_id("ads");
  request.mutable_study()->add_parameters()->set_name("tp");
  v1::Parameter* vector = request.mutable_study()->add_parameters();
  vector->set_name("sharding");
  vector->mutable_default_value()
      ->mutable_list_value()
      ->add_values()
      ->set_string_value("full");
  (*request.mutable_study()->mutable_labels())["team"] = "ads";
  return request;
}

// The request's bytes with every `from` replaced by as many other bytes.
std::string Corrupt(absl::string_view from, absl::string_view to) {
  std::string bytes = Request().SerializeAsString();
  const size_t at = bytes.find(std::string(from));
  EXPECT_NE(at, std::string::npos);
  return bytes.replace(at, from.size(), std::string(to));
}

TEST_F(WireMessageTest, WhatWasSerializedParsesToTheSame) {
  const auto bytes = SerializeMessage(Request());
  ASSERT_THAT(bytes, IsOk());
  v1::CreateStudyRequest parsed;
  EXPECT_THAT(ParseMessage(*bytes, &parsed), IsOk());
  EXPECT_THAT(parsed, EqualsProto(Request()));
}

TEST_F(WireMessageTest, AnEmptyMessageIsAMessage) {
  const auto bytes = SerializeMessage(v1::GetStudyRequest());
  ASSERT_THAT(bytes, IsOk());
  EXPECT_TRUE(bytes->Valid());
  v1::GetStudyRequest parsed;
  EXPECT_THAT(ParseMessage(*bytes, &parsed), IsOk());
}

TEST_F(WireMessageTest, InvalidUtf8IsRefusedWithThePathOfTheField) {
  const struct {
    const char* from;
    const char* to;
    const char* field;
  } cases[] = {
      {"ads", "\xFFqs", "study_id"},
      {"tp", "t\xC3", "study.parameters[0].name"},
      {"full", "\xED\xA0\x80l",
       "study.parameters[1].default_value.list_value.values[0].string_value"},
      {"team", "te\xC0\x80", "study.labels[0].key"},
  };
  for (const auto& c : cases) {
    v1::CreateStudyRequest parsed;
    const absl::Status status =
        ParseMessage(Bytes(Corrupt(c.from, c.to)), &parsed);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("UTF-8")));
    EXPECT_EQ(FieldNamedBy(status), c.field);
  }
}

TEST_F(WireMessageTest, GarbageIsRefusedWithTheNameOfTheMessage) {
  for (const std::string& garbage :
       {std::string("\xFF\xFF\xFF\xFF"), std::string("\x0A\x7F"),
        std::string(1000, '\x0B')}) {
    v1::CreateStudyRequest parsed;
    EXPECT_THAT(ParseMessage(Bytes(garbage), &parsed),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("cubicml.v1.CreateStudyRequest")));
  }
}

TEST_F(WireMessageTest, ValuesNestedTooDeeplyAreRefused) {
  v1::Value value;
  v1::Value* inner = &value;
  for (int depth = 0; depth < 200; ++depth) {
    inner = inner->mutable_list_value()->add_values();
  }
  v1::Value parsed;
  EXPECT_THAT(ParseMessage(Bytes(value.SerializeAsString()), &parsed),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(WireMessageTest, AMessageThatNeverArrivedIsRefused) {
  v1::GetStudyRequest parsed;
  EXPECT_THAT(ParseMessage(grpc::ByteBuffer(), &parsed),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(WireMessageTest, AnAnswerThatClientsCannotReceiveIsNotSent) {
  v1::ListTrialsResponse response;
  for (int i = 0; i < 5; ++i) {
    response.add_trials()->set_reason_detail(std::string(1 << 20, 'x'));
  }
  EXPECT_THAT(
      SerializeMessage(response),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("page_size")));
}

}  // namespace
}  // namespace cubicml
