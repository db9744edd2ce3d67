// SPDX-License-Identifier: Apache-2.0

#include "client/cli/scalar.h"

#include "client/cli/closest_name.h"
#include "client/cli/typed_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/support/proto_matchers.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

std::string KindOf(absl::string_view text) {
  const absl::StatusOr<v1::Value> value = ResolveScalar(text);
  if (!value.ok()) return "error";
  switch (value->kind_case()) {
    case v1::Value::kInt64Value:
      return "int " + FormatValue(*value);
    case v1::Value::kDoubleValue:
      return "double " + FormatValue(*value);
    case v1::Value::kBoolValue:
      return "bool " + FormatValue(*value);
    case v1::Value::kStringValue:
      return "string " + FormatValue(*value);
    default:
      return "null";
  }
}

TEST(ScalarTest, PlainWordsFollowTheCoreSchema) {
  EXPECT_EQ(KindOf("12"), "int 12");
  EXPECT_EQ(KindOf("-3"), "int -3");
  EXPECT_EQ(KindOf("+3"), "int 3");
  EXPECT_EQ(KindOf("012"), "int 12");
  EXPECT_EQ(KindOf("0x1F"), "int 31");
  EXPECT_EQ(KindOf("0o17"), "int 15");
  EXPECT_EQ(KindOf("1.0"), "double 1.0");
  EXPECT_EQ(KindOf(".5"), "double 0.5");
  EXPECT_EQ(KindOf("1e3"), "double 1000.0");
  EXPECT_EQ(KindOf("1."), "double 1.0");
  EXPECT_EQ(KindOf("true"), "bool true");
  EXPECT_EQ(KindOf("False"), "bool false");
  EXPECT_EQ(KindOf("~"), "null");
  EXPECT_EQ(KindOf("null"), "null");
  EXPECT_EQ(KindOf("tRUE"), "string tRUE");
  EXPECT_EQ(KindOf("yes"), "string yes");
  EXPECT_EQ(KindOf("1_000"), "string 1_000");
  EXPECT_EQ(KindOf("1e"), "string 1e");
  EXPECT_EQ(KindOf("."), "string .");
  EXPECT_EQ(KindOf("-"), "string -");
  EXPECT_EQ(KindOf("nan"), "string nan");
  EXPECT_EQ(KindOf("9223372036854775807"), "int 9223372036854775807");
  EXPECT_EQ(KindOf("9223372036854775808"), "error");
  EXPECT_EQ(KindOf("0xFFFFFFFFFFFFFFFF"), "error");
}

TEST(ScalarTest, WordsTakeTheDeclaredType) {
  EXPECT_THAT(ParseScalar("8", v1::STRING),
              IsOkAndHolds(EqualsProto("string_value: '8'")));
  EXPECT_THAT(ParseScalar("8", v1::NUMBER),
              IsOkAndHolds(EqualsProto("double_value: 8")));
  EXPECT_THAT(ParseScalar("8.0", v1::INTEGER),
              IsOkAndHolds(EqualsProto("int64_value: 8")));
  EXPECT_THAT(ParseScalar("8.5", v1::INTEGER),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseScalar("1", v1::BOOLEAN),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ScalarTest, DurationsArePositive) {
  EXPECT_THAT(ParsePositiveDuration("90"), IsOkAndHolds(absl::Seconds(90)));
  EXPECT_THAT(ParsePositiveDuration("1h30m"), IsOkAndHolds(absl::Minutes(90)));
  for (const char* bad : {"", "0", "-1s", "soon", "inf"}) {
    EXPECT_THAT(ParsePositiveDuration(bad),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(TypedValuesTest, AssignmentsAreTypedByTheStudy) {
  const v1::Study study = ExampleStudy();
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const Values parameters,
      ParseParameters(study, std::vector<std::string>{"batch=8", "mode=a=b",
                                                      "layers=full,none"}));
  EXPECT_THAT(parameters.at("batch"), EqualsProto("int64_value: 8"));
  EXPECT_THAT(parameters.at("mode"), EqualsProto("string_value: 'a=b'"));
  EXPECT_EQ(FormatValue(parameters.at("layers")), "full,none");
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const Values one,
      ParseParameters(study, std::vector<std::string>{"layers=full"}));
  EXPECT_EQ(FormatValue(one.at("layers")), "full,full");
  CUBICML_ASSERT_OK_AND_ASSIGN(
      const Values json, ParseParameters(study, std::vector<std::string>{
                                                    R"(layers=["a,b","c"])"}));
  EXPECT_EQ(json.at("layers").list_value().values(0).string_value(), "a,b");
}

TEST(TypedValuesTest, MistakesNameTheWord) {
  const v1::Study study = ExampleStudy();
  const auto error = [&](const char* word) {
    return std::string(
        ParseParameters(study, std::vector<std::string>{word, word})
            .status()
            .message());
  };
  EXPECT_THAT(error("batch"), HasSubstr("'batch' is not NAME=VALUE"));
  EXPECT_THAT(error("batsh=1"), HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(error("batch=x"), HasSubstr("batch: 'x' is not an integer"));
  EXPECT_THAT(error("batch=1"), HasSubstr("is given twice"));
  EXPECT_THAT(error("layers=a,b,c"), HasSubstr("has 3 values instead of 2"));
}

TEST(ClosestNameTest, SuggestsWhatIsNearAndListsWhatIsFew) {
  const absl::string_view names[] = {"scale", "step", "values"};
  EXPECT_EQ(SuggestName("scal", names), "; did you mean 'scale'?");
  EXPECT_EQ(SuggestName("zzzzzz", names), "; it is one of scale, step, values");
  EXPECT_EQ(SuggestName("zzzzzz", {}), "");
  EXPECT_EQ(SuggestName("setp", names), "; did you mean 'step'?");
}

TEST(ClosestNameTest, SuggestsWhatOneOfTheTwoBeginsWith) {
  const absl::string_view names[] = {"integer", "number", "default"};
  EXPECT_EQ(SuggestName("default_value", names), "; did you mean 'default'?");
  EXPECT_EQ(SuggestName("int", names), "; did you mean 'integer'?");
  EXPECT_EQ(SuggestName("i", names), "; it is one of integer, number, default");
}

}  // namespace
}  // namespace cubicml
