// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/grpc_status.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

class GrpcStatusTest : public ::testing::Test {
 protected:
  GrpcStatusTest() {
    SetLogSink(
        [this](LogLevel, absl::string_view line) { log_.emplace_back(line); });
  }
  ~GrpcStatusTest() override { SetLogSink(nullptr); }

  std::vector<std::string> log_;
};

TEST_F(GrpcStatusTest, EveryCodeKeepsItsMeaning) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus(), "GetStudy").ok());
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status = ToGrpcStatus(
        absl::Status(static_cast<absl::StatusCode>(code), "x"), "GetStudy");
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
  }
}

TEST_F(GrpcStatusTest, APlainErrorCarriesItsMessageAndNoDetails) {
  const grpc::Status status =
      ToGrpcStatus(absl::NotFoundError("studies/x does not exist"), "GetStudy");
  EXPECT_EQ(status.error_message(), "studies/x does not exist");
  EXPECT_THAT(status.error_details(), IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GrpcStatusTest, AFieldErrorNamesTheFieldInTheDetails) {
  const grpc::Status status = ToGrpcStatus(
      FieldError("parameters[2].integer.max", "must be at least min"),
      "CreateStudy");
  const google::rpc::Status details = Details(status);
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(),
            "parameters[2].integer.max: must be at least min");
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(details.details(0).UnpackTo(&bad_request));
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).field(),
            "parameters[2].integer.max");
  EXPECT_EQ(bad_request.field_violations(0).description(),
            "must be at least min");
}

TEST_F(GrpcStatusTest, ContextBeforeAFieldErrorStaysInTheDescription) {
  const grpc::Status status = ToGrpcStatus(
      WithContext(FieldError("parent", "is empty"), "after 3 trials"), "X");
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(Details(status).details(0).UnpackTo(&bad_request));
  EXPECT_EQ(bad_request.field_violations(0).description(),
            "after 3 trials: parent: is empty");
}

TEST_F(GrpcStatusTest, OverloadSaysWhenToRetry) {
  const grpc::Status status = ToGrpcStatus(
      OverloadedError("busy", absl::Milliseconds(1250)), "SuggestTrials");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::RetryInfo retry_info;
  ASSERT_TRUE(Details(status).details(0).UnpackTo(&retry_info));
  EXPECT_EQ(retry_info.retry_delay().seconds(), 1);
  EXPECT_EQ(retry_info.retry_delay().nanos(), 250'000'000);
}

TEST_F(GrpcStatusTest, OurOwnFaultsAreLoggedAndGoOutOnlyAsAnId) {
  for (const auto code :
       {absl::StatusCode::kInternal, absl::StatusCode::kDataLoss,
        absl::StatusCode::kUnknown}) {
    log_.clear();
    const grpc::Status status =
        ToGrpcStatus(absl::Status(code, "SELECT secret FROM t; /var/lib/x.db"),
                     "ListTrials");
    EXPECT_THAT(status.error_message(), Not(HasSubstr("SELECT")));
    EXPECT_THAT(status.error_message(), Not(HasSubstr("/var")));
    // What a failed sync leaves behind nobody knows.
    EXPECT_THAT(status.error_message(), Not(HasSubstr("nothing was changed")));
    ASSERT_EQ(log_.size(), 1u);
    EXPECT_THAT(log_[0], HasSubstr("SELECT secret"));
    EXPECT_THAT(log_[0], HasSubstr("method=ListTrials"));
    const std::string& message = status.error_message();
    const size_t begin = message.find("error_id=");
    ASSERT_NE(begin, std::string::npos);
    EXPECT_THAT(log_[0],
                HasSubstr(message.substr(begin, message.size() - begin - 1)));
  }
}

TEST_F(GrpcStatusTest, LongAndBrokenTextIsMadeFitForHeaders) {
  const grpc::Status status =
      ToGrpcStatus(FieldError(std::string(3000, 'f'),
                              absl::StrCat("\xFF", std::string(5000, 'x'))),
                   "CreateStudy");
  EXPECT_LE(status.error_message().size(), kMaxStatusMessageBytes);
  EXPECT_EQ(ValidUtf8Prefix(status.error_message()),
            status.error_message().size());
  EXPECT_LE(status.error_details().size(), 4096u);
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(Details(status).details(0).UnpackTo(&bad_request));
  EXPECT_LE(bad_request.field_violations(0).field().size(), 256u);
}

}  // namespace
}  // namespace cubicml
