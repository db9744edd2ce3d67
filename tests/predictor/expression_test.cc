// SPDX-License-Identifier: Apache-2.0

#include "predictor/expression.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{
      "tp", "pp", "dp", "gpus", "mode", "sharding", "maybe"};
  return *names;
}

absl::StatusOr<Expression> Parse(absl::string_view text) {
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  if (!parser.ok()) return parser.status();
  return parser->Parse(text, Names());
}

// tp = 4, pp = 2, dp = 8, gpus = 64, mode = 'fast', a vector, and NULL.
SqlValue ValueOf(size_t name) {
  switch (name) {
    case 0:
      return SqlValue::Integer(4);
    case 1:
      return SqlValue::Integer(2);
    case 2:
      return SqlValue::Integer(8);
    case 3:
      return SqlValue::Integer(64);
    case 4:
      return SqlValue::Text("fast");
    case 5:
      return SqlValue::Text(R"(["full","none","full"])");
    default:
      return SqlValue::Null();
  }
}

Verdict Evaluate(const Expression& expression, std::string* error = nullptr) {
  ExpressionEvaluator evaluator({&expression});
  std::vector<SqlValue> values;
  for (const size_t name : expression.uses()) values.push_back(ValueOf(name));
  const Verdict verdict = evaluator.Evaluate(0, values);
  if (error != nullptr) *error = evaluator.error();
  return verdict;
}

Verdict Evaluate(absl::string_view text) {
  const absl::StatusOr<Expression> expression = Parse(text);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.status();
  return expression.ok() ? Evaluate(*expression) : Verdict::kError;
}

TEST(ExpressionTest, ArithmeticAndLogicAreThoseOfSql) {
  for (const char* text : {
           "tp * pp * dp = gpus",
           "gpus % (tp * dp) = 0",
           "TP = 4 AND Pp = 2",
           "pp > 1 OR tp = 1",
           "tp IN (1, 2, 4) AND dp NOT IN (1, 2, 4)",
           "tp BETWEEN 2 AND 8",
           "7 / 2 = 3 AND 7 / 2.0 = 3.5",
           "mode = 'fast' AND mode LIKE 'FA%' AND mode GLOB 'f*'",
           "length(mode) = 4 AND substr(mode, 1, 2) = 'fa'",
           "CASE WHEN tp > 2 THEN dp ELSE 0 END = 8",
           "max(tp, pp) = 4 AND min(tp, pp) = 2 AND abs(-tp) = 4",
           "coalesce(maybe, 7) = 7 AND ifnull(maybe, 1) AND maybe IS NULL",
           "iif(tp = 4, 1, 0)",
           "log2(dp) = 3 AND sqrt(tp) = 2 AND pow(2, 3) = dp",
           "ceil(2.1) = 3 AND floor(2.9) = 2 AND mod(7, 4) = 3",
           "\"tp\" = 4 AND [pp] = 2 AND `dp` = 8",
           "(tp & 1) = 0 AND (tp | 3) = 7 AND 1 << pp = 4",
           "0.5",
           "1",
           "'it''s; -- (' <> mode",
       }) {
    EXPECT_EQ(Evaluate(text), Verdict::kTrue) << text;
  }
  for (const char* text :
       {"tp * pp = gpus", "NOT tp", "0", "mode = 'slow'", "mode"}) {
    EXPECT_EQ(Evaluate(text), Verdict::kFalse) << text;
  }
  for (const char* text : {"maybe", "maybe > 1", "tp > maybe", "tp / 0 = 1",
                           "NULL", "maybe = 1 OR tp = 1"}) {
    EXPECT_EQ(Evaluate(text), Verdict::kNull) << text;
  }
}

TEST(ExpressionTest, VectorsCanBeCountedSummedAndIndexed) {
  for (const char* text : {
           "vec_count(sharding, 'full') = 2",
           "vec_count(sharding, 'none') <= 1",
           "vec_count(sharding, 1) = 0",
           "vec_count('[1, 2.0, 1, -1]', 1) = 2",
           "vec_count('[1, 2.0, 1]', 2) = 1",
           "sharding ->> 0 = 'full' AND sharding ->> 1 = 'none'",
           "json_array_length(sharding) = 3",
           "json_extract(sharding, '$[2]') = 'full'",
           "vec_sum('[1, 2, 3]') = 6 AND vec_sum('[0.5, 1]') = 1.5",
           "vec_min('[3, 1.5, 2]') = 1.5 AND vec_max('[3, 1, 2]') = 3",
           "vec_max(sharding) = 'none' AND vec_min(sharding) = 'full'",
           "vec_sum('[]') = 0 AND vec_max('[]') IS NULL",
           "vec_count(maybe, 1) IS NULL AND vec_sum(maybe) IS NULL",
           R"(vec_count('["a\"b\\c\u0009"]', 'a"b\c' || '	') = 1)",
       }) {
    EXPECT_EQ(Evaluate(text), Verdict::kTrue) << text;
  }
  for (const char* text :
       {"vec_sum(sharding)", "vec_count('x', 1)", "vec_count('[1', 1)",
        "vec_count('[[1]]', 1)", "vec_count('[1]x', 1)", "vec_min('[1,]')",
        "vec_max('[\"a]')", "vec_sum('[\"\\q\"]')", "vec_sum('{}')"}) {
    EXPECT_EQ(Evaluate(text), Verdict::kError) << text;
  }
}

TEST(ExpressionTest, SaysWhichNamesItUses) {
  EXPECT_THAT(Parse("tp * DP = gpus")->uses(), ElementsAre(0, 2, 3));
  EXPECT_THAT(Parse("'tp' = mode")->uses(), ElementsAre(4));
  EXPECT_THAT(Parse("1 < 2")->uses(), IsEmpty());
  // A name may be that of a function, too.
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  ASSERT_THAT(parser, IsOk());
  const std::vector<std::string> names = {"abs", "max"};
  const auto expression = parser->Parse("abs(max) > 1", names);
  ASSERT_THAT(expression, IsOk());
  EXPECT_THAT(expression->uses(), ElementsAre(1));
}

TEST(ExpressionTest, ErrorsCarryWhatSqliteSays) {
  EXPECT_THAT(Parse("tpp > 1"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr("no such column: tpp"),
                                               HasSubstr("tp, pp, dp"))));
  EXPECT_THAT(Parse("tp >"), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("syntax error")));
  EXPECT_THAT(Parse("\"full\" = mode"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no such column: full")));
  EXPECT_THAT(Parse("frobnicate(tp)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no such function: frobnicate")));
  EXPECT_THAT(Parse("abs(tp, pp)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wrong number of arguments")));
}

TEST(ExpressionTest, AnErrorOfTheEvaluationIsTold) {
  std::string error;
  EXPECT_EQ(Evaluate(*Parse("json_extract(mode, '$[0]')"), &error),
            Verdict::kError);
  EXPECT_THAT(error, HasSubstr("malformed JSON"));
  EXPECT_EQ(Evaluate(*Parse("abs(-9223372036854775807 - 1) > tp"), &error),
            Verdict::kError);
  EXPECT_THAT(error, HasSubstr("integer overflow"));
}

TEST(ExpressionTest, WhatIsNoSingleExpressionOfItsNamesIsRefused) {
  for (const char* text : {
           "",
           "   \n",
           "tp; DROP TABLE x",
           ";",
           "tp = 4 -- comment",
           "tp /* comment */ = 4",
           "tp /* open",
           "tp) OR (tp",
           "tp = 4) FROM (SELECT 1",
           "(tp = 4",
           "tp = 4)",
           ")(",
           "'open",
           "\"open",
           "[open",
           "`open",
           "tp = ?1",
           "tp = ?",
           "tp = :a",
           "tp = @a",
           "tp = $a",
           "tp, pp",
           "tp AS x",
           "*",
           "(SELECT 1)",
           "(sElEcT 1)",
           "EXISTS (SELECT 1)",
           "tp IN (SELECT 4)",
           "tp IN (VALUES (4))",
           "tp IN sqlite_master",
           "tp IN sqlite_schema",
           "tp IN json_each('[4]')",
           "tp IN pragma_table_info('x')",
           "tp IN (WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 "
           "FROM c) SELECT x FROM c)",
           "sqlite_master.name",
           "ATTACH 'x' AS y",
           "PRAGMA journal_mode",
           "SELECT 1",
           "CREATE TABLE x (y)",
           "rowid",
           "OID = 1",
           "_rowid_ IS NULL",
           "max(tp)",
           "min(tp) = 4",
           "count(*)",
           "sum(tp) > 1",
           "avg(tp)",
           "total(tp)",
           "group_concat(mode)",
           "json_group_array(tp)",
           "row_number() OVER ()",
           "max(tp, pp) OVER ()",
           "random() > 0",
           "randomblob(1000000000)",
           "zeroblob(1000000000)",
           "hex(zeroblob(1000))",
           "current_timestamp > 0",
           "current_date",
           "date('now')",
           "julianday('now')",
           "strftime('%s', 'now')",
           "unixepoch()",
           "load_extension('x')",
           "readfile('/etc/passwd')",
           "sqlite_version()",
           "sqlite_source_id()",
           "sqlite_compileoption_get(1)",
           "changes()",
           "last_insert_rowid()",
           "printf('%1000000000d', 1)",
           "format('%s', tp)",
           "replace(mode, 'a', 'b')",
           "fts3_tokenizer('x')",
           "char(65)",
           "RAISE(ABORT, 'x')",
           "mode MATCH 'x'",
           "mode REGEXP 'x'",
       }) {
    EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_THAT(Parse(absl::string_view("tp = 4\0", 7)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Parse(absl::string_view("mode = 'a\0b'", 12)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Parse("mode = '\xff\xfe'"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Parse("tp \x01 = 4"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ExpressionTest, HostileExpressionsEndQuickly) {
  std::string nested(4000, '(');
  std::string closed = std::string(1900, '(') + "1" + std::string(1900, ')');
  std::string negated;
  std::string sum = "1";
  std::string concat = "mode";
  std::string calls;
  std::string pattern = "mode LIKE '";
  while (negated.size() < 4000) negated += "NOT ";
  while (sum.size() < 4000) sum += "+1";
  while (concat.size() < 4000) concat += "||mode";
  while (calls.size() < 3500) calls += "abs(";
  while (pattern.size() < 4000) pattern += "%a";
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& text :
       {nested, closed, negated + "1", sum, concat, calls + "1", pattern + "'",
        "'" + std::string(4000, 'x') + "' = mode", std::string(5000, '1'),
        std::string(1000000, 'x')}) {
    const absl::StatusOr<Expression> expression = Parse(text);
    if (expression.ok()) {
      Evaluate(*expression);
    } else {
      EXPECT_THAT(expression, StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_THAT(
      Parse(std::string(kMaxExpressionBytes + 1, ' ')),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 4096")));
}

TEST(ExpressionTest, GarbageIsRefusedOrEvaluated) {
  // Words of SQL in random order: most are no expression, none may do harm.
  const std::vector<std::string> words = {
      "tp",     "(",    ")",     "SELECT", "'",    "\"", "--", "/*", "*/",
      ";",      "=",    "*",     "FROM",   "abs(", ",",  "1",  "?",  "[",
      "]",      "NULL", "CASE",  "WHEN",   "END",  "||", "%",  "IN", "mode",
      "EXISTS", "AS",   "OVER(", "->>",    "0x1f", "1e", ".",  "$",  "x'00'"};
  uint64_t state = 88172645463325252u;
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  ASSERT_THAT(parser, IsOk());
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (int w = 0; w < 1 + i % 9; ++w) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      absl::StrAppend(&text, words[state % words.size()], i % 2 ? " " : "");
    }
    const absl::StatusOr<Expression> expression = parser->Parse(text, Names());
    if (expression.ok()) Evaluate(*expression);
  }
}

TEST(ExpressionTest, NamesThatMeanSomethingElseAreNotPlain) {
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  ASSERT_THAT(parser, IsOk());
  for (const char* name : {"tp", "key", "plan", "max", "json", "mode", "vec"}) {
    EXPECT_TRUE(parser->IsPlainName(name)) << name;
  }
  for (const char* name :
       {"select",  "From",  "WHERE", "order", "group",  "and",          "not",
        "null",    "true",  "FALSE", "rowid", "oid",    "current_time", "case",
        "default", "index", "limit", "check", "values", "between"}) {
    EXPECT_FALSE(parser->IsPlainName(name)) << name;
  }
}

TEST(EvaluatorPoolTest, ThreadsEvaluateAtOnce) {
  const absl::StatusOr<Expression> product = Parse("tp * pp * dp = gpus");
  const absl::StatusOr<Expression> count =
      Parse("vec_count(sharding, 'full') = 2");
  ASSERT_THAT(product, IsOk());
  ASSERT_THAT(count, IsOk());
  EvaluatorPool pool({&*product, &*count});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 200; ++i) {
        EvaluatorPool::Lease lease(&pool);
        const int64_t dp = t + i % 3;
        const std::vector<SqlValue> values = {
            SqlValue::Integer(4), SqlValue::Integer(2), SqlValue::Integer(dp),
            SqlValue::Integer(64)};
        EXPECT_EQ(lease->Evaluate(0, values),
                  dp == 8 ? Verdict::kTrue : Verdict::kFalse);
        const std::vector<SqlValue> vector = {
            SqlValue::Text(t % 2 ? R"(["full","full"])" : R"(["full"])")};
        EXPECT_EQ(lease->Evaluate(1, vector),
                  t % 2 ? Verdict::kTrue : Verdict::kFalse);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cubicml
