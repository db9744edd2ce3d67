// SPDX-License-Identifier: Apache-2.0

#include "predictor/value_text.h"

#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

using ::testing::EndsWith;

TEST(ValueTextTest, DoublesReadBackAsTheSame) {
  EXPECT_EQ(FormatDouble(4), "4");
  EXPECT_EQ(FormatDouble(-0.0), "0");
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(1e300), "1e+300");
  for (const double value :
       {1.0 / 3.0, 0.1 + 0.2, 1e-310, -12345.678, 9007199254740993.0,
        std::numeric_limits<double>::max()}) {
    double read = 0;
    ASSERT_TRUE(absl::SimpleAtod(FormatDouble(value), &read));
    EXPECT_EQ(read, value);
  }
}

TEST(ValueTextTest, MessagesArePrintableAndShortWhateverTheValue) {
  v1::Value value;
  EXPECT_EQ(DescribeValue(value), "nothing");
  value.set_int64_value(4);
  EXPECT_EQ(DescribeValue(value), "the integer 4");
  value.set_double_value(0.5);
  EXPECT_EQ(DescribeValue(value), "the number 0.5");
  value.set_bool_value(true);
  EXPECT_EQ(DescribeValue(value), "the boolean true");
  value.set_string_value("a\"b\n\xc3\xa4");
  EXPECT_EQ(DescribeValue(value), "the string \"a\\\"b\\n\xc3\xa4\"");
  value.set_string_value("\xff");
  EXPECT_EQ(DescribeValue(value), "the string \"\\377\"");
  value.set_string_value(std::string(1000, 'x'));
  EXPECT_THAT(DescribeValue(value), EndsWith("xxx...\""));
  EXPECT_LT(DescribeValue(value).size(), 100u);
  value.mutable_list_value();
  EXPECT_EQ(DescribeValue(value), "a list");
}

}  // namespace
}  // namespace cubicml
