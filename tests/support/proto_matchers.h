// SPDX-License-Identifier: Apache-2.0
//
// EqualsProto(message) and EqualsProto("text format"): field by field, the
// order of maps does not matter, NaN equals NaN.

#ifndef CUBICML_TESTS_SUPPORT_PROTO_MATCHERS_H_
#define CUBICML_TESTS_SUPPORT_PROTO_MATCHERS_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "base/log.h"
#include "gmock/gmock.h"

namespace cubicml {

class EqualsProtoMatcher {
 public:
  using is_gtest_matcher = void;

  explicit EqualsProtoMatcher(const google::protobuf::Message& expected)
      : expected_(expected.New()) {
    expected_->CopyFrom(expected);
  }
  explicit EqualsProtoMatcher(std::string text) : text_(std::move(text)) {}

  bool MatchAndExplain(const google::protobuf::Message& actual,
                       ::testing::MatchResultListener* listener) const {
    const std::unique_ptr<google::protobuf::Message> expected(actual.New());
    if (expected_ != nullptr) {
      CUBICML_CHECK(expected_->GetDescriptor() == actual.GetDescriptor());
      expected->CopyFrom(*expected_);
    } else if (!google::protobuf::TextFormat::ParseFromString(text_,
                                                              expected.get())) {
      *listener << "but the expected text cannot be parsed";
      return false;
    }
    google::protobuf::util::DefaultFieldComparator comparator;
    comparator.set_treat_nan_as_equal(true);
    google::protobuf::util::MessageDifferencer differencer;
    differencer.set_field_comparator(&comparator);
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    const bool equal = differencer.Compare(*expected, actual);
    if (!equal) *listener << "which differs:\n" << differences;
    return equal;
  }
  void DescribeTo(std::ostream* os) const {
    *os << "equals the proto {"
        << (expected_ != nullptr ? expected_->ShortDebugString() : text_)
        << "}";
  }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "not: ";
    DescribeTo(os);
  }

 private:
  std::shared_ptr<google::protobuf::Message> expected_;  // null: use text_
  std::string text_;
};

inline EqualsProtoMatcher EqualsProto(
    const google::protobuf::Message& expected) {
  return EqualsProtoMatcher(expected);
}
inline EqualsProtoMatcher EqualsProto(const char* text) {
  return EqualsProtoMatcher(std::string(text));
}

}  // namespace cubicml

#endif  // CUBICML_TESTS_SUPPORT_PROTO_MATCHERS_H_
