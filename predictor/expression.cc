// SPDX-License-Identifier: Apache-2.0

#include "predictor/expression.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "predictor/expression_text.h"
#include "predictor/vector_functions.h"

namespace cubicml {
namespace {

constexpr size_t kIdleEvaluators = 8;
// The SELECT around the expression and the one that names its variables.
constexpr int kSelects = 2;
constexpr int kStepsPerCheck = 1000;
constexpr int kChecksPerEvaluation = 100;
constexpr size_t kNamesInMessage = 12;

// Deterministic, scalar, and cheap for any arguments.
constexpr std::array kFunctions = {
    "->",        "->>",     "abs",          "ceil",      "ceiling",
    "coalesce",  "exp",     "floor",        "glob",      "ifnull",
    "iif",       "instr",   "json",         "json_type", "json_array_length",
    "length",    "like",    "json_extract", "ln",        "log",
    "log10",     "log2",    "lower",        "ltrim",     "max",
    "min",       "mod",     "nullif",       "pow",       "power",
    "round",     "rtrim",   "sign",         "sqrt",      "substr",
    "substring", "trim",    "trunc",        "typeof",    "upper",
    "vec_count", "vec_max", "vec_min",      "vec_sum",
};

// What an expression may do; SQLite asks while it prepares a statement.
// `selects` counts those of one statement.
int Authorize(void* selects, int action, const char* /*first*/,
              const char* function, const char* /*database*/,
              const char* /*trigger*/) {
  if (action == SQLITE_SELECT) {
    return ++*static_cast<int*>(selects) <= kSelects ? SQLITE_OK : SQLITE_DENY;
  }
  if (action != SQLITE_FUNCTION || function == nullptr) return SQLITE_DENY;
  const auto allowed = std::any_of(
      kFunctions.begin(), kFunctions.end(),
      [&](const char* name) { return absl::EqualsIgnoreCase(name, function); });
  return allowed ? SQLITE_OK : SQLITE_DENY;
}

int CountDown(void* checks_left) {
  return --*static_cast<int*>(checks_left) < 0 ? 1 : 0;
}

void SetLimits(sqlite3* db) {
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 1000);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 1);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 25000);
  sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 100);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256);
  sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 0);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
}

absl::string_view GetText(sqlite3_value* value) {
  const void* const text = sqlite3_value_blob(value);
  return absl::string_view(static_cast<const char*>(text),
                           static_cast<size_t>(sqlite3_value_bytes(value)));
}

void SetError(sqlite3_context* context, const absl::Status& status) {
  const std::string message(status.message());
  sqlite3_result_error(context, message.c_str(), -1);
}

void SetResult(sqlite3_context* context, const VectorElement& element) {
  if (const int64_t* integer = std::get_if<int64_t>(&element)) {
    sqlite3_result_int64(context, *integer);
  } else if (const double* real = std::get_if<double>(&element)) {
    sqlite3_result_double(context, *real);
  } else {
    const std::string& text = std::get<std::string>(element);
    sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8);
  }
}

// In the functions below, the result is NULL unless set.

void VecCount(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  VectorElement wanted;
  switch (sqlite3_value_type(values[1])) {
    case SQLITE_INTEGER:
      wanted = int64_t{sqlite3_value_int64(values[1])};
      break;
    case SQLITE_FLOAT:
      wanted = sqlite3_value_double(values[1]);
      break;
    case SQLITE_TEXT:
      wanted = std::string(GetText(values[1]));
      break;
    default:
      return;
  }
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  const absl::StatusOr<int64_t> equal =
      CountInVector(GetText(values[0]), wanted);
  if (!equal.ok()) return SetError(context, equal.status());
  sqlite3_result_int64(context, *equal);
}

void VecSum(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  const absl::StatusOr<VectorElement> sum = SumVector(GetText(values[0]));
  if (!sum.ok()) return SetError(context, sum.status());
  SetResult(context, *sum);
}

using FindElement =
    absl::StatusOr<std::optional<VectorElement>> (*)(absl::string_view);

template <FindElement find>
void VecExtreme(sqlite3_context* context, int /*count*/,
                sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  const absl::StatusOr<std::optional<VectorElement>> found =
      find(GetText(values[0]));
  if (!found.ok()) return SetError(context, found.status());
  if (found->has_value()) SetResult(context, **found);
}

bool RegisterVectorFunctions(sqlite3* db) {
  struct Function {
    const char* name;
    int arguments;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  constexpr std::array kVectorFunctions = {
      Function{"vec_count", 2, VecCount},
      Function{"vec_sum", 1, VecSum},
      Function{"vec_min", 1, VecExtreme<FindLeast>},
      Function{"vec_max", 1, VecExtreme<FindGreatest>},
  };
  return std::all_of(
      kVectorFunctions.begin(), kVectorFunctions.end(), [&](const Function& f) {
        return sqlite3_create_function_v2(
                   db, f.name, f.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                   nullptr, f.call, nullptr, nullptr, nullptr) == SQLITE_OK;
      });
}

// NULL when there is no memory for it. Confined to one thread at a time by its
// owner, so SQLite's own mutex is left out.
SqliteConnection OpenSandbox() {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(
      ":memory:", &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      nullptr);
  SqliteConnection db(raw);
  if (opened != SQLITE_OK) return nullptr;
  SetLimits(db.get());
  for (const int option :
       {SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_DQS_DDL,
        SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
        SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
        SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(db.get(), option, 0, nullptr);
  }
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // max() and min() of one argument are aggregates: they do not exist here.
  for (const char* name : {"max", "min"}) {
    sqlite3_create_function(db.get(), name, 1, SQLITE_UTF8, nullptr, nullptr,
                            nullptr, nullptr);
  }
  if (!RegisterVectorFunctions(db.get())) return nullptr;
  return db;
}

struct Prepared {
  SqliteStatement statement;
  std::string error;  // empty when prepared
};

Prepared Prepare(sqlite3* db, const std::string& sql) {
  int selects = 0;
  sqlite3_set_authorizer(db, Authorize, &selects);
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(
      db, sql.data(), static_cast<int>(sql.size()),
      SQLITE_PREPARE_PERSISTENT | SQLITE_PREPARE_NO_VTAB, &raw, &tail);
  sqlite3_set_authorizer(db, nullptr, nullptr);
  Prepared result{SqliteStatement(raw), {}};
  if (code != SQLITE_OK) {
    result.error = sqlite3_errmsg(db);
  } else if (raw == nullptr || tail != sql.data() + sql.size() ||
             sqlite3_column_count(raw) != 1) {
    result.error = "is not one expression";
  }
  return result;
}

std::string MakeSql(absl::string_view text,
                    const std::vector<std::string>& names) {
  // Line breaks keep the expression's last word apart from what follows.
  std::string sql = absl::StrCat("SELECT (\n", text, "\n)");
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&sql, i == 0 ? " FROM (SELECT ?" : ", ?", i + 1, " AS \"",
                    names[i], "\"");
  }
  if (!names.empty()) sql.push_back(')');
  return sql;
}

std::string ListNames(std::span<const std::string> names) {
  if (names.empty()) return "; no names are known here";
  const size_t shown = std::min(names.size(), kNamesInMessage);
  return absl::StrCat("; the names known here are ",
                      absl::StrJoin(names.first(shown), ", "),
                      names.size() > shown ? ", ..." : "");
}

int Bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  switch (value.type) {
    case SqlValue::Type::kInteger:
      return sqlite3_bind_int64(statement, index, value.integer);
    case SqlValue::Type::kReal:
      return sqlite3_bind_double(statement, index, value.real);
    case SqlValue::Type::kText:
      return sqlite3_bind_text64(statement, index, value.text.data(),
                                 value.text.size(), SQLITE_STATIC, SQLITE_UTF8);
    case SqlValue::Type::kNull:
      break;
  }
  return sqlite3_bind_null(statement, index);
}

Verdict ReadVerdict(sqlite3_stmt* statement) {
  switch (sqlite3_column_type(statement, 0)) {
    case SQLITE_NULL:
      return Verdict::kNull;
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, 0) != 0 ? Verdict::kTrue
                                                     : Verdict::kFalse;
    default:  // SQL's truth of a text is that of the number it starts with
      return sqlite3_column_double(statement, 0) != 0.0 ? Verdict::kTrue
                                                        : Verdict::kFalse;
  }
}

}  // namespace

SqlValue SqlValue::Integer(int64_t value) {
  SqlValue result;
  result.type = Type::kInteger;
  result.integer = value;
  return result;
}

SqlValue SqlValue::Real(double value) {
  SqlValue result;
  result.type = Type::kReal;
  result.real = value;
  return result;
}

SqlValue SqlValue::Text(absl::string_view value) {
  SqlValue result;
  result.type = Type::kText;
  result.text = value;
  return result;
}

void SqliteCloser::operator()(sqlite3* connection) const {
  sqlite3_close_v2(connection);
}

void SqliteFinalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

ExpressionParser::ExpressionParser(SqliteConnection connection)
    : connection_(std::move(connection)) {}

absl::StatusOr<ExpressionParser> ExpressionParser::Create() {
  SqliteConnection connection = OpenSandbox();
  if (connection == nullptr) {
    return absl::InternalError("SQLite gives no connection in memory");
  }
  return ExpressionParser(std::move(connection));
}

absl::StatusOr<Expression> ExpressionParser::Parse(
    absl::string_view text, std::span<const std::string> names) {
  if (text.size() > kMaxExpressionBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", text.size(), " bytes; at most ",
                     kMaxExpressionBytes, " are allowed"));
  }
  CUBICML_ASSIGN_OR_RETURN(const std::vector<std::string> identifiers,
                           ScanExpression(text));
  // Any of these may be a variable, or else a function or a word of SQL.
  std::vector<size_t> mentioned;
  std::vector<std::string> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::binary_search(identifiers.begin(), identifiers.end(),
                           absl::AsciiStrToLower(names[i]))) {
      mentioned.push_back(i);
      columns.push_back(names[i]);
    }
  }
  for (const absl::string_view row_id : {"oid", "_rowid_", "rowid"}) {
    if (std::binary_search(identifiers.begin(), identifiers.end(), row_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no such column: ", row_id, ListNames(names)));
    }
  }
  Prepared whole = Prepare(connection_.get(), MakeSql(text, columns));
  if (!whole.error.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(whole.error, ListNames(names)));
  }
  // Those are used without which it does not prepare.
  Expression expression;
  std::vector<std::string> used;
  for (size_t i = 0; i < mentioned.size(); ++i) {
    std::vector<std::string> others = columns;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (Prepare(connection_.get(), MakeSql(text, others)).error.empty()) {
      continue;
    }
    expression.uses_.push_back(mentioned[i]);
    used.push_back(columns[i]);
  }
  expression.text_ = std::string(text);
  expression.sql_ = MakeSql(text, used);
  return expression;
}

bool ExpressionParser::IsPlainName(const std::string& name) {
  const std::string names[] = {name};
  const auto alone = Parse(name, names);
  const auto within =
      Parse(absl::StrCat("NOT ", name, " AND ", name, " + 1 > ", name), names);
  return alone.ok() && within.ok() && alone->uses().size() == 1;
}

ExpressionEvaluator::ExpressionEvaluator(
    std::vector<const Expression*> expressions)
    : expressions_(std::move(expressions)), statements_(expressions_.size()) {}

ExpressionEvaluator::~ExpressionEvaluator() = default;

sqlite3_stmt* ExpressionEvaluator::GetStatement(size_t expression) {
  SqliteStatement& statement = statements_[expression];
  if (statement != nullptr) return statement.get();
  if (connection_ == nullptr) connection_ = OpenSandbox();
  if (connection_ == nullptr) {
    error_ = "SQLite gives no connection in memory";
    return nullptr;
  }
  Prepared prepared =
      Prepare(connection_.get(), expressions_[expression]->sql_);
  if (!prepared.error.empty()) {
    error_ = std::move(prepared.error);
    return nullptr;
  }
  statement = std::move(prepared.statement);
  return statement.get();
}

Verdict ExpressionEvaluator::Evaluate(size_t expression,
                                      std::span<const SqlValue> values) {
  sqlite3_stmt* const statement = GetStatement(expression);
  if (statement == nullptr) return Verdict::kError;
  int checks_left = kChecksPerEvaluation;
  sqlite3_progress_handler(connection_.get(), kStepsPerCheck, CountDown,
                           &checks_left);
  bool bound = true;
  for (size_t i = 0; i < values.size() && bound; ++i) {
    bound = Bind(statement, static_cast<int>(i + 1), values[i]) == SQLITE_OK;
  }
  Verdict verdict = Verdict::kError;
  if (bound && sqlite3_step(statement) == SQLITE_ROW) {
    verdict = ReadVerdict(statement);
  } else {
    error_ = sqlite3_errmsg(connection_.get());
  }
  sqlite3_reset(statement);
  // The counter is on this stack.
  sqlite3_progress_handler(connection_.get(), 0, nullptr, nullptr);
  return verdict;
}

EvaluatorPool::EvaluatorPool(std::vector<const Expression*> expressions)
    : expressions_(std::move(expressions)) {}

EvaluatorPool::Lease::Lease(EvaluatorPool* pool) : pool_(pool) {
  {
    MutexLock lock(&pool_->mu_);
    if (!pool_->idle_.empty()) {
      evaluator_ = std::move(pool_->idle_.back());
      pool_->idle_.pop_back();
    }
  }
  if (evaluator_ == nullptr) {
    evaluator_ = std::make_unique<ExpressionEvaluator>(pool_->expressions_);
  }
}

EvaluatorPool::Lease::~Lease() {
  MutexLock lock(&pool_->mu_);
  if (pool_->idle_.size() < kIdleEvaluators) {
    pool_->idle_.push_back(std::move(evaluator_));
  }
}

}  // namespace cubicml
