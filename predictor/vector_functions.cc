// SPDX-License-Identifier: Apache-2.0

#include "predictor/vector_functions.h"

#include <sqlite3.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace cubicml {
namespace {

using Element = std::variant<int64_t, double, std::string>;

// Reads the flat arrays that vectors are bound as: numbers, and strings whose
// only escapes are \" \\ and \u00XX, as Domain writes them.
class ArrayReader {
 public:
  explicit ArrayReader(absl::string_view json) : rest_(json) {}

  // Calls `take` for each element; false when it is no such array.
  template <typename Take>
  bool Read(Take take) {
    Skip();
    if (!Eat('[')) return false;
    Skip();
    if (Eat(']')) return AtEnd();
    while (true) {
      Skip();
      std::optional<Element> element = ReadElement();
      if (!element.has_value()) return false;
      take(*element);
      Skip();
      if (Eat(']')) return AtEnd();
      if (!Eat(',')) return false;
    }
  }

 private:
  void Skip() {
    while (!rest_.empty() &&
           absl::ascii_isspace(static_cast<unsigned char>(rest_.front()))) {
      rest_.remove_prefix(1);
    }
  }
  bool Eat(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool AtEnd() {
    Skip();
    return rest_.empty();
  }

  std::optional<Element> ReadElement() {
    if (Eat('"')) return ReadString();
    int64_t integer = 0;
    double real = 0.0;
    const char* const begin = rest_.data();
    const char* const end = begin + rest_.size();
    const std::from_chars_result as_integer =
        std::from_chars(begin, end, integer);
    const std::from_chars_result as_real = std::from_chars(begin, end, real);
    if (as_real.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(as_real.ptr - begin));
    if (as_integer.ec == std::errc() && as_integer.ptr == as_real.ptr) {
      return integer;
    }
    return real;
  }

  std::optional<Element> ReadString() {
    std::string text;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c != '\\') {
        text.push_back(c);
        continue;
      }
      if (Eat('"')) {
        text.push_back('"');
      } else if (Eat('\\')) {
        text.push_back('\\');
      } else if (!ReadControlCharacter(&text)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool ReadControlCharacter(std::string* text) {
    if (rest_.size() < 5 || rest_.substr(0, 3) != "u00") return false;
    unsigned int code = 0;
    const char* const digits = rest_.data() + 3;
    const std::from_chars_result read =
        std::from_chars(digits, digits + 2, code, 16);
    if (read.ptr != digits + 2 || code >= 0x80) return false;
    text->push_back(static_cast<char>(code));
    rest_.remove_prefix(5);
    return true;
  }

  absl::string_view rest_;
};

absl::string_view GetText(sqlite3_value* value) {
  const void* const text = sqlite3_value_blob(value);
  return absl::string_view(static_cast<const char*>(text),
                           static_cast<size_t>(sqlite3_value_bytes(value)));
}

double AsNumber(const Element& element) {
  if (const int64_t* integer = std::get_if<int64_t>(&element)) {
    return static_cast<double>(*integer);
  }
  const double* const real = std::get_if<double>(&element);
  return real != nullptr ? *real : 0.0;
}

bool IsText(const Element& element) {
  return std::holds_alternative<std::string>(element);
}

// As `=` of SQL: numbers by value whatever their type, a text only with a text.
bool Equals(const Element& element, sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_TEXT: {
      const std::string* const text = std::get_if<std::string>(&element);
      return text != nullptr && absl::string_view(*text) == GetText(value);
    }
    case SQLITE_INTEGER:
      if (const int64_t* integer = std::get_if<int64_t>(&element)) {
        return *integer == sqlite3_value_int64(value);
      }
      [[fallthrough]];
    case SQLITE_FLOAT:
      return !IsText(element) &&
             AsNumber(element) == sqlite3_value_double(value);
    default:
      return false;
  }
}

void SetResult(sqlite3_context* context, const Element& element) {
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

constexpr char kNoVector[] =
    "the first argument of a vec_ function must be a vector";

void VecCount(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
      sqlite3_value_type(values[1]) == SQLITE_NULL) {
    return;  // the result is NULL unless set
  }
  int64_t equal = 0;
  const bool read = ArrayReader(GetText(values[0])).Read([&](const Element& e) {
    if (Equals(e, values[1])) ++equal;
  });
  if (!read) return sqlite3_result_error(context, kNoVector, -1);
  sqlite3_result_int64(context, equal);
}

void VecSum(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  int64_t integers = 0;
  double reals = 0.0;
  bool only_integers = true;
  bool any_text = false;
  const bool read = ArrayReader(GetText(values[0])).Read([&](const Element& e) {
    any_text = any_text || IsText(e);
    const int64_t* const integer = std::get_if<int64_t>(&e);
    only_integers = only_integers && integer != nullptr &&
                    !__builtin_add_overflow(integers, *integer, &integers);
    reals += AsNumber(e);
  });
  if (!read) return sqlite3_result_error(context, kNoVector, -1);
  if (any_text) {
    return sqlite3_result_error(context, "vec_sum of strings", -1);
  }
  if (only_integers) return sqlite3_result_int64(context, integers);
  sqlite3_result_double(context, reals);
}

// Less(a, b) for numbers, and for strings by their bytes, as in SQL.
bool Less(const Element& a, const Element& b) {
  if (IsText(a) && IsText(b)) {
    return std::get<std::string>(a) < std::get<std::string>(b);
  }
  if (IsText(a) != IsText(b)) return IsText(b);
  return AsNumber(a) < AsNumber(b);
}

void TakeExtreme(sqlite3_context* context, sqlite3_value* vector, bool least) {
  if (sqlite3_value_type(vector) == SQLITE_NULL) return;
  std::optional<Element> best;
  const bool read = ArrayReader(GetText(vector)).Read([&](const Element& e) {
    if (!best || (least ? Less(e, *best) : Less(*best, e))) best = e;
  });
  if (!read) return sqlite3_result_error(context, kNoVector, -1);
  if (best.has_value()) SetResult(context, *best);
}

void VecMin(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  TakeExtreme(context, values[0], true);
}

void VecMax(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  TakeExtreme(context, values[0], false);
}

}  // namespace

absl::Status RegisterVectorFunctions(sqlite3* connection) {
  struct Function {
    const char* name;
    int arguments;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  for (const Function& f :
       {Function{"vec_count", 2, VecCount}, Function{"vec_sum", 1, VecSum},
        Function{"vec_min", 1, VecMin}, Function{"vec_max", 1, VecMax}}) {
    const int code = sqlite3_create_function_v2(
        connection, f.name, f.arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
        nullptr, f.call, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return absl::InternalError(sqlite3_errstr(code));
  }
  return absl::OkStatus();
}

}  // namespace cubicml
