// SPDX-License-Identifier: Apache-2.0

#include "cubicml/client/values.h"

#include "cubicml/client/resource_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

TEST(ValuesTest, EachCppTypeMakesItsKindOfValue) {
  EXPECT_THAT(MakeValue(8), EqualsProto("int64_value: 8"));
  EXPECT_THAT(MakeValue(uint16_t{8}), EqualsProto("int64_value: 8"));
  EXPECT_THAT(MakeValue(0.5), EqualsProto("double_value: 0.5"));
  EXPECT_THAT(MakeValue(true), EqualsProto("bool_value: true"));
  EXPECT_THAT(MakeValue("full"), EqualsProto("string_value: 'full'"));
  EXPECT_THAT(MakeValue(std::vector<bool>{true, false}),
              EqualsProto("list_value { values { bool_value: true } "
                          "values { bool_value: false } }"));
}

TEST(ValuesTest, NamedValuesAreTyped) {
  const Values values = MakeValues({{"gpus", 8}, {"fp8", true}, {"m", "70b"}});
  EXPECT_EQ(values.at("gpus").int64_value(), 8);
  EXPECT_TRUE(values.at("fp8").bool_value());
  EXPECT_EQ(values.at("m").string_value(), "70b");
}

TEST(ValuesTest, AnotherTypeIsRefusedByName) {
  EXPECT_THAT(ValueAs<int64_t>(MakeValue("8")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "'8' is not an "
                       "integer"));
  EXPECT_THAT(ValueAs<bool>(MakeValue(1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ValueAs<std::vector<std::string>>(MakeValue("a")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ValuesTest, AnIntegerIsAlsoANumber) {
  EXPECT_THAT(ValueAs<double>(MakeValue(8)), IsOkAndHolds(8.0));
}

TEST(ValuesTest, AKnobThatIsNotActiveIsNotFound) {
  EXPECT_THAT(GetValue<int64_t>(ValueMap(), "vpp"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(ValuesTest, TextsReadBackAsTheSameNumber) {
  EXPECT_EQ(FormatValue(MakeValue(2.0)), "2.0");
  EXPECT_EQ(FormatValue(MakeValue(0.1)), "0.1");
  EXPECT_EQ(FormatValue(MakeValue(1e-9)), "1e-09");
  EXPECT_EQ(FormatValue(MakeValue(std::vector<int>{1, 2})), "1,2");
  EXPECT_EQ(FormatNumber(123456789.0), "123456789");
}

TEST(ResourceNamesTest, ShortAndLongNamesAreTheSame) {
  EXPECT_THAT(ParseStudyName("ads"), IsOkAndHolds("studies/ads"));
  EXPECT_THAT(ParseStudyName("studies/ads"), IsOkAndHolds("studies/ads"));
  EXPECT_THAT(ParseTrialName("ads/7"), IsOkAndHolds("studies/ads/trials/7"));
  EXPECT_THAT(ParseTrialName("studies/ads/trials/7"),
              IsOkAndHolds("studies/ads/trials/7"));
  EXPECT_EQ(StudyIdOf("studies/ads/trials/7"), "ads");
  EXPECT_EQ(TrialNumberOf("studies/ads/trials/7"), 7);
}

TEST(ResourceNamesTest, OtherWordsAreRefused) {
  for (const char* bad : {"", "Ads", "1ads", "a_b", "studies/", "a/b/c"}) {
    EXPECT_THAT(ParseStudyName(bad),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
  for (const char* bad : {"ads", "ads/0", "ads/-1", "ads/07", "ads/x",
                          "studies/ads/trials/", "runs/ads/trials/1"}) {
    EXPECT_THAT(ParseTrialName(bad),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

}  // namespace
}  // namespace cubicml
