// SPDX-License-Identifier: Apache-2.0

#include "storage/json_text.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/field_error.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "storage/sqlite_db.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

std::string Number(double value) {
  std::string out;
  AppendJsonNumber(value, &out);
  return out;
}

TEST(JsonTextTest, NumbersStayReal) {
  EXPECT_EQ(Number(8), "8.0");
  EXPECT_EQ(Number(-0.0), "-0.0");
  EXPECT_EQ(Number(0.1), "0.1");
  EXPECT_EQ(Number(1e300), "1e+300");
  EXPECT_EQ(Number(std::nan("")), "null");
  EXPECT_EQ(Number(std::numeric_limits<double>::infinity()), "9e999");
  EXPECT_EQ(Number(-std::numeric_limits<double>::infinity()), "-9e999");
}

TEST(JsonTextTest, SqliteReadsBackExactlyWhatWasWritten) {
  Rng rng(5);
  CUBICML_ASSERT_OK_AND_ASSIGN(Database db,
                               Database::Open({.path = ":memory:"}));
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (uint64_t j = rng.Below(12); j > 0; --j) {
      text += static_cast<char>(rng.Below(127) + 1);
    }
    ValueMap map;
    map[text].set_string_value(text);
    std::string json;
    CUBICML_ASSERT_OK(AppendJsonObject(map, "p", &json));
    CUBICML_ASSERT_OK_AND_ASSIGN(
        Statement read, db.Prepare("SELECT key, atom FROM json_each(?1)"));
    read.BindText(1, json);
    ASSERT_THAT(read.Step(), IsOkAndHolds(true)) << json;
    EXPECT_EQ(read.Text(0), text);
    EXPECT_EQ(read.Text(1), text);
  }
}

TEST(JsonTextTest, ObjectsHaveSortedKeysAndTypedValues) {
  ValueMap map;
  map["b"].set_int64_value(-3);
  map["a"].set_bool_value(true);
  map["c"].mutable_list_value()->add_values()->set_double_value(2);
  map["d"].mutable_list_value();
  map["e"];
  std::string json;
  CUBICML_ASSERT_OK(AppendJsonObject(map, "p", &json));
  EXPECT_EQ(json, R"({"a":true,"b":-3,"c":[2.0],"d":[],"e":null})");
  json.clear();
  CUBICML_ASSERT_OK(AppendJsonObject(StringMap(), "p", &json));
  EXPECT_EQ(json, "{}");
}

TEST(JsonTextTest, BadStringsAndEndlessNestingAreRefusedByPath) {
  std::string json;
  ValueMap map;
  map["a"].mutable_list_value()->add_values()->set_string_value("\xff");
  absl::Status status = AppendJsonObject(map, "parameters", &json);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(status.GetPayload(kFieldPayloadUrl), "parameters");
  map.clear();
  v1::Value* value = &map["a"];
  for (int i = 0; i < 50; ++i)
    value = value->mutable_list_value()->add_values();
  status = AppendJsonObject(map, "parameters", &json);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace cubicml
