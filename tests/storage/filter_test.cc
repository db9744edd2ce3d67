// SPDX-License-Identifier: Apache-2.0

#include "storage/filter.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/rng.h"
#include "cubicml/v1/study.pb.h"
#include "gmock/gmock.h"
#include "storage/sqlite_db.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::HasSubstr;

std::span<const FilterField> Fields() {
  static const auto* const fields = new std::array<FilterField, 6>{{
      {"number", FilterType::kInteger, "number"},
      {"objective", FilterType::kReal, "objective"},
      {"state", FilterType::kEnum, "state", v1::Trial::State_descriptor()},
      {"late", FilterType::kBoolean, "late"},
      {"client_id", FilterType::kString, "client_id"},
      {"labels.", FilterType::kString, "labels"},
  }};
  return *fields;
}

// A row as both evaluators see it.
struct Row {
  FilterValue number;
  FilterValue objective;
  FilterValue state;
  FilterValue late;
  FilterValue client_id;
  std::map<std::string, std::string> labels;
};

bool Matches(const Filter& filter, const Row& row) {
  return filter.Matches(
      [&row](const FilterField& field, absl::string_view key) -> FilterValue {
        if (field.name == "number") return row.number;
        if (field.name == "objective") return row.objective;
        if (field.name == "state") return row.state;
        if (field.name == "late") return row.late;
        if (field.name == "client_id") return row.client_id;
        const auto found = row.labels.find(std::string(key));
        return found == row.labels.end() ? FilterValue()
                                         : FilterValue(found->second);
      });
}

absl::Status Error(absl::string_view text) {
  const auto filter = Filter::Parse(text, Fields());
  EXPECT_THAT(filter, StatusIs(absl::StatusCode::kInvalidArgument));
  if (!filter.ok()) {
    EXPECT_EQ(filter.status().GetPayload(kFieldPayloadUrl), "filter");
  }
  return filter.status();
}

std::string Sql(absl::string_view text) {
  const auto filter = Filter::Parse(text, Fields());
  EXPECT_THAT(filter, IsOk());
  return filter.ok() ? filter->ToSql().sql : "";
}

TEST(FilterTest, EmptyTextLetsEverythingThrough) {
  EXPECT_EQ(Sql(""), "1");
  EXPECT_EQ(Sql("  \n"), "1");
  EXPECT_TRUE(Matches(Filter(), Row()));
}

TEST(FilterTest, BecomesSqlWithBoundValuesOnly) {
  EXPECT_EQ(Sql("number >= -3"), "number >= ?");
  EXPECT_EQ(Sql("state=ACTIVE AND objective>1 AND late=true"),
            "(state = ? AND objective > ? AND late = ?)");
  EXPECT_EQ(Sql("NOT (client_id = 'x' OR number = 1)"),
            "(((client_id = ? OR number = ?)) IS NOT TRUE)");
  EXPECT_EQ(Sql("labels.team != \"a b\""),
            "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND atom "
            "!= ?)");
  EXPECT_EQ(Sql("labels.\"a b\" = c"),
            "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND atom "
            "= ?)");
}

TEST(FilterTest, ErrorsSayWhereAndWhatWasExpected) {
  EXPECT_THAT(Error("nothing = 1").message(),
              HasSubstr("at byte 0: unknown field"));
  EXPECT_THAT(Error("nothing = 1").message(), HasSubstr("labels.KEY"));
  EXPECT_THAT(Error("number 1").message(), HasSubstr("at byte 7: expected ="));
  EXPECT_THAT(Error("number = x").message(), HasSubstr("at byte 9"));
  EXPECT_THAT(Error("number = 99999999999999999999").message(),
              HasSubstr("64-bit integer"));
  EXPECT_THAT(Error("objective > nan").message(), HasSubstr("finite"));
  EXPECT_THAT(Error("objective > 1e999").message(), HasSubstr("finite"));
  EXPECT_THAT(Error("state = RUNNING").message(),
              HasSubstr("ACTIVE, STOPPING"));
  EXPECT_THAT(Error("state > ACTIVE").message(), HasSubstr("only = and !="));
  EXPECT_THAT(Error("late = yes").message(), HasSubstr("true or false"));
  EXPECT_THAT(Error("(number = 1").message(), HasSubstr("expected ')'"));
  EXPECT_THAT(Error("number = 1)").message(), HasSubstr("expected AND"));
  EXPECT_THAT(Error("number = 1 late = true").message(),
              HasSubstr("expected AND, OR or the end"));
  EXPECT_THAT(Error("client_id = 'x").message(), HasSubstr("does not end"));
  EXPECT_THAT(Error("client_id = \"\\xff\"").message(), HasSubstr("not UTF-8"));
  EXPECT_THAT(Error("number ! 1").message(), HasSubstr("'!'"));
  EXPECT_THAT(Error("number = 1 AND").message(),
              HasSubstr("the name of a field"));
  EXPECT_THAT(Error("labels. = 1").message(), HasSubstr("unknown field"));
  EXPECT_THAT(Error("NOT").message(), HasSubstr("the name of a field"));
}

TEST(FilterTest, MixedAndOrNeedsParentheses) {
  EXPECT_THAT(Error("number=1 AND number=2 OR number=3").message(),
              HasSubstr("add parentheses"));
  EXPECT_EQ(Sql("number=1 AND (number=2 OR number=3)"),
            "(number = ? AND (number = ? OR number = ?))");
}

TEST(FilterTest, LengthAndDepthAreBounded) {
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "(";
  EXPECT_THAT(Error(deep).message(), HasSubstr("nested deeper"));
  std::string negated;
  for (int i = 0; i < 500; ++i) negated += "NOT ";
  EXPECT_THAT(Error(negated + "number=1").message(),
              HasSubstr("nested deeper"));
  EXPECT_THAT(Error(std::string(4097, ' ')).message(),
              HasSubstr("longer than"));
  std::string wide = "number=1";
  while (wide.size() + 13 <= kMaxFilterBytes) wide += " OR number=1";
  CUBICML_EXPECT_OK(Filter::Parse(wide, Fields()));
}

TEST(FilterTest, MissingValuesNeverCompareAndNotMakesThatTrue) {
  const Row row;  // nothing has a value
  for (const char* op : {"=", "!=", "<", "<=", ">", ">="}) {
    const std::string text = absl::StrCat("objective ", op, " 1");
    CUBICML_ASSERT_OK_AND_ASSIGN(const Filter filter,
                                 Filter::Parse(text, Fields()));
    EXPECT_FALSE(Matches(filter, row)) << text;
    CUBICML_ASSERT_OK_AND_ASSIGN(
        const Filter negated,
        Filter::Parse(absl::StrCat("NOT ", text), Fields()));
    EXPECT_TRUE(Matches(negated, row)) << text;
  }
}

// Text that is a filter, of some depth.
std::string RandomFilter(Rng* rng, int depth) {
  if (depth > 0 && rng->Below(3) == 0) {
    return absl::StrCat("NOT (", RandomFilter(rng, depth - 1), ")");
  }
  if (depth > 0 && rng->Below(2) == 0) {
    const std::string word = rng->Below(2) == 0 ? " AND " : " OR ";
    std::string text = absl::StrCat("(", RandomFilter(rng, depth - 1), ")");
    for (uint64_t i = 0; i <= rng->Below(3); ++i) {
      absl::StrAppend(&text, word, "(", RandomFilter(rng, depth - 1), ")");
    }
    return text;
  }
  const std::vector<std::string> ops = {"=", "!=", "<", "<=", ">", ">="};
  const std::string& op = ops[rng->Below(ops.size())];
  switch (rng->Below(5)) {
    case 0:
      return absl::StrCat("number ", op, " ", rng->Below(4));
    case 1:
      return absl::StrCat("objective ", op, " ", rng->Below(4));
    case 2:
      return rng->Below(2) == 0 ? "state = ACTIVE" : "state != STOPPING";
    case 3:
      return absl::StrCat("client_id ", op, " \"c", rng->Below(4), "\"");
    default:
      return absl::StrCat("labels.k", rng->Below(2), " ", op, " v",
                          rng->Below(3));
  }
}

Row RandomRow(Rng* rng) {
  Row row;
  row.number = static_cast<int64_t>(rng->Below(4));
  if (rng->Below(2) == 0) row.objective = static_cast<double>(rng->Below(4));
  row.state = std::string(rng->Below(2) == 0 ? "ACTIVE" : "STOPPING");
  row.late = int64_t{0};
  row.client_id = absl::StrCat("c", rng->Below(4));
  for (const char* key : {"k0", "k1"}) {
    if (rng->Below(2) == 0) row.labels[key] = absl::StrCat("v", rng->Below(3));
  }
  return row;
}

TEST(FilterTest, DirectEvaluationAndSqlAgreeOnRandomFilters) {
  Rng rng(20240501);
  CUBICML_ASSERT_OK_AND_ASSIGN(Database db,
                               Database::Open({.path = ":memory:"}));
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomFilter(&rng, 3);
    CUBICML_ASSERT_OK_AND_ASSIGN(const Filter filter,
                                 Filter::Parse(text, Fields()));
    const Row row = RandomRow(&rng);
    std::string labels = "{";
    for (const auto& [key, value] : row.labels) {
      absl::StrAppend(&labels, labels.size() > 1 ? "," : "", "\"", key, "\":\"",
                      value, "\"");
    }
    labels += "}";
    const SqlCondition condition = filter.ToSql();
    CUBICML_ASSERT_OK_AND_ASSIGN(
        Statement query,
        db.Prepare(absl::StrCat(
            "SELECT 1 FROM (SELECT ? AS number, ? AS objective, ? AS state, ? "
            "AS late, ? AS client_id, ? AS labels) WHERE ",
            condition.sql)));
    int index = 0;
    for (const FilterValue* value :
         {&row.number, &row.objective, &row.state, &row.late, &row.client_id}) {
      query.BindValue(++index, *value);
    }
    query.BindText(++index, labels);
    for (const FilterValue& value : condition.values) {
      query.BindValue(++index, value);
    }
    EXPECT_THAT(query.Step(), IsOkAndHolds(Matches(filter, row)))
        << text << " on " << labels;
  }
}

TEST(FilterTest, RandomBytesNeverCrash) {
  Rng rng(7);
  const std::string alphabet = "()\"'\\ANDORT=!<>. number1e-+:\xff\n";
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (uint64_t j = rng.Below(40); j > 0; --j) {
      text += alphabet[rng.Below(alphabet.size())];
    }
    const auto filter = Filter::Parse(text, Fields());
    if (!filter.ok()) {
      EXPECT_EQ(filter.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace cubicml
