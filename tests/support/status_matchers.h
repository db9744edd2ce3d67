// SPDX-License-Identifier: Apache-2.0
//
// Matchers for absl::Status and absl::StatusOr in the shape of newer Abseil,
// which the distribution's is without:
//   EXPECT_THAT(store.GetStudy("x"), StatusIs(absl::StatusCode::kNotFound));
//   EXPECT_THAT(Parse("1"), IsOkAndHolds(1));

#ifndef CUBICML_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define CUBICML_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/field_error.h"
#include "gmock/gmock.h"

namespace cubicml {

// The field of the request that the error is about; empty for none.
inline std::string FieldNamedBy(const absl::Status& status) {
  const auto field = status.GetPayload(kFieldPayloadUrl);
  return field.has_value() ? std::string(*field) : "";
}

namespace status_matchers_internal {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

// A matcher of StatusOr<T>& whose value must match.
template <typename StatusOrType>
class IsOkAndHoldsMatcher : public ::testing::MatcherInterface<StatusOrType> {
 public:
  using Value = typename std::remove_reference_t<StatusOrType>::value_type;

  template <typename Inner>
  explicit IsOkAndHoldsMatcher(const Inner& inner)
      : inner_(::testing::SafeMatcherCast<const Value&>(inner)) {}

  void DescribeTo(std::ostream* os) const override {
    *os << "is OK and has a value that ";
    inner_.DescribeTo(os);
  }
  void DescribeNegationTo(std::ostream* os) const override {
    *os << "is not OK or has a value that ";
    inner_.DescribeNegationTo(os);
  }
  bool MatchAndExplain(
      StatusOrType actual,
      ::testing::MatchResultListener* listener) const override {
    if (!actual.ok()) {
      *listener << "which is " << actual.status().ToString();
      return false;
    }
    return inner_.MatchAndExplain(*actual, listener);
  }

 private:
  const ::testing::Matcher<const Value&> inner_;
};

template <typename Inner>
class IsOkAndHoldsFactory {
 public:
  explicit IsOkAndHoldsFactory(Inner inner) : inner_(std::move(inner)) {}

  template <typename StatusOrType>
  // NOLINTNEXTLINE(google-explicit-constructor): GoogleMock converts it.
  operator ::testing::Matcher<StatusOrType>() const {
    return ::testing::Matcher<StatusOrType>(
        new IsOkAndHoldsMatcher<const StatusOrType&>(inner_));
  }

 private:
  const Inner inner_;
};

class StatusIsMatcher {
 public:
  using is_gtest_matcher = void;

  StatusIsMatcher(::testing::Matcher<absl::StatusCode> code,
                  ::testing::Matcher<const std::string&> message)
      : code_(std::move(code)), message_(std::move(message)) {}

  template <typename T>
  bool MatchAndExplain(const T& actual,
                       ::testing::MatchResultListener* listener) const {
    const absl::Status& status = GetStatus(actual);
    const bool matches = code_.Matches(status.code()) &&
                         message_.Matches(std::string(status.message()));
    if (!matches) *listener << "which is " << status.ToString();
    return matches;
  }
  void DescribeTo(std::ostream* os) const {
    *os << "has a code that ";
    code_.DescribeTo(os);
    *os << " and a message that ";
    message_.DescribeTo(os);
  }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "not: ";
    DescribeTo(os);
  }

 private:
  ::testing::Matcher<absl::StatusCode> code_;
  ::testing::Matcher<const std::string&> message_;
};

class IsOkMatcher {
 public:
  using is_gtest_matcher = void;

  template <typename T>
  bool MatchAndExplain(const T& actual,
                       ::testing::MatchResultListener* listener) const {
    const absl::Status& status = GetStatus(actual);
    if (!status.ok()) *listener << "which is " << status.ToString();
    return status.ok();
  }
  void DescribeTo(std::ostream* os) const { *os << "is OK"; }
  void DescribeNegationTo(std::ostream* os) const { *os << "is not OK"; }
};

}  // namespace status_matchers_internal

// Of a Status or StatusOr.
inline status_matchers_internal::IsOkMatcher IsOk() { return {}; }

// Of a Status or StatusOr; `code` and `message` are values or matchers.
template <typename Code, typename Message>
status_matchers_internal::StatusIsMatcher StatusIs(Code&& code,
                                                   Message&& message) {
  return {::testing::Matcher<absl::StatusCode>(std::forward<Code>(code)),
          ::testing::MatcherCast<const std::string&>(
              std::forward<Message>(message))};
}
template <typename Code>
status_matchers_internal::StatusIsMatcher StatusIs(Code&& code) {
  return StatusIs(std::forward<Code>(code), ::testing::_);
}

// Of a StatusOr; `inner` is a value or a matcher.
template <typename Inner>
auto IsOkAndHolds(Inner&& inner) {
  return status_matchers_internal::IsOkAndHoldsFactory<std::decay_t<Inner>>(
      std::forward<Inner>(inner));
}

}  // namespace cubicml

#define CUBICML_ASSERT_OK(expr) ASSERT_THAT(expr, ::cubicml::IsOk())
#define CUBICML_EXPECT_OK(expr) EXPECT_THAT(expr, ::cubicml::IsOk())
// CUBICML_ASSERT_OK_AND_ASSIGN(const Row row, store.Get(id)); in tests that
// return void.
#define CUBICML_ASSERT_OK_AND_ASSIGN(lhs, expr) \
  CUBICML_ASSERT_OK_AND_ASSIGN_INNER(           \
      CUBICML_TEST_CONCAT(cubicml_test_status_or_, __LINE__), lhs, expr)
#define CUBICML_ASSERT_OK_AND_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                       \
  ASSERT_THAT(tmp, ::cubicml::IsOk());                     \
  lhs = *std::move(tmp)
#define CUBICML_TEST_CONCAT_INNER(a, b) a##b
#define CUBICML_TEST_CONCAT(a, b) CUBICML_TEST_CONCAT_INNER(a, b)

#endif  // CUBICML_TESTS_SUPPORT_STATUS_MATCHERS_H_
