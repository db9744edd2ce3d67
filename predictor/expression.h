// SPDX-License-Identifier: Apache-2.0
//
// Boolean expressions of constraints and active_if. Their language is SQLite's
// own: each is prepared once as a SELECT over its variables, in a private
// in-memory connection that can do nothing else: no tables, no subqueries, no
// aggregates, only deterministic scalar functions, and a bound on text, depth
// and work.
//
// Beside SQLite's own functions there are, for vectors (JSON arrays of numbers
// or of strings): vec_count(vector, value), vec_sum, vec_min, vec_max.

#ifndef CUBICML_PREDICTOR_EXPRESSION_H_
#define CUBICML_PREDICTOR_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

struct sqlite3;
struct sqlite3_stmt;

namespace cubicml {

inline constexpr size_t kMaxExpressionBytes = 4096;

// A value of a variable. Text is not copied and must outlive the evaluation.
struct SqlValue {
  enum class Type { kNull, kInteger, kReal, kText };
  Type type = Type::kNull;
  int64_t integer = 0;
  double real = 0.0;
  absl::string_view text;

  static SqlValue Null() { return {}; }
  static SqlValue Integer(int64_t value);
  static SqlValue Real(double value);
  static SqlValue Text(absl::string_view value);
};

enum class Verdict : uint8_t {
  kFalse,
  kTrue,
  kNull,
  kError,  // e.g. malformed JSON, integer overflow of abs()
};

// A checked expression. A value type, made by ExpressionParser.
class Expression {
 public:
  const std::string& text() const { return text_; }
  // Which of the names that it was parsed with it uses, increasing.
  const std::vector<size_t>& uses() const { return uses_; }

 private:
  friend class ExpressionParser;
  friend class ExpressionEvaluator;

  std::string text_;
  std::string sql_;
  std::vector<size_t> uses_;
};

struct SqliteCloser {
  void operator()(sqlite3* connection) const;
};
struct SqliteFinalizer {
  void operator()(sqlite3_stmt* statement) const;
};
using SqliteConnection = std::unique_ptr<sqlite3, SqliteCloser>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteFinalizer>;

// Turns texts into expressions. Not thread-safe.
class ExpressionParser {
 public:
  // INTERNAL when SQLite cannot give a connection.
  static absl::StatusOr<ExpressionParser> Create();

  // `names` are the variables in scope; upper and lower case are the same.
  // INVALID_ARGUMENT with SQLite's message ("no such column: tpp"), or ours
  // where the text is no single expression, or too long.
  absl::StatusOr<Expression> Parse(absl::string_view text,
                                   std::span<const std::string> names);

  // Whether `name` can stand for a variable without quotes: it is no reserved
  // word of SQL and means nothing else already (true, null, rowid).
  bool IsPlainName(const std::string& name);

 private:
  explicit ExpressionParser(SqliteConnection connection);

  SqliteConnection connection_;
};

// Evaluates expressions, which must outlive it. Not thread-safe; see
// EvaluatorPool. About 0.3 us for an evaluation of simple arithmetic.
class ExpressionEvaluator {
 public:
  explicit ExpressionEvaluator(std::vector<const Expression*> expressions);
  ~ExpressionEvaluator();
  ExpressionEvaluator(const ExpressionEvaluator&) = delete;
  ExpressionEvaluator& operator=(const ExpressionEvaluator&) = delete;

  // `values` in the order of uses() of that expression.
  Verdict Evaluate(size_t expression, std::span<const SqlValue> values);
  // Why the last evaluation was kError.
  const std::string& error() const { return error_; }

 private:
  sqlite3_stmt* GetStatement(size_t expression);

  const std::vector<const Expression*> expressions_;
  SqliteConnection connection_;              // opened at the first use
  std::vector<SqliteStatement> statements_;  // likewise, each
  std::string error_;
};

// Lends evaluators of the same expressions to threads. Thread-safe.
class EvaluatorPool {
 public:
  explicit EvaluatorPool(std::vector<const Expression*> expressions);

  // Gives its evaluator back at the end of its life, which must end before the
  // pool's.
  class Lease {
   public:
    explicit Lease(EvaluatorPool* pool);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    ExpressionEvaluator* operator->() const { return evaluator_.get(); }

   private:
    EvaluatorPool* const pool_;
    std::unique_ptr<ExpressionEvaluator> evaluator_;
  };

 private:
  const std::vector<const Expression*> expressions_;
  Mutex mu_;
  std::vector<std::unique_ptr<ExpressionEvaluator>> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_EXPRESSION_H_
