// SPDX-License-Identifier: Apache-2.0

#include "predictor/vector_functions.h"

#include <charconv>
#include <cstddef>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"

namespace cubicml {
namespace {

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
      std::optional<VectorElement> element = ReadElement();
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

  std::optional<VectorElement> ReadElement() {
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

  std::optional<VectorElement> ReadString() {
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

double AsNumber(const VectorElement& element) {
  if (const int64_t* integer = std::get_if<int64_t>(&element)) {
    return static_cast<double>(*integer);
  }
  const double* const real = std::get_if<double>(&element);
  return real != nullptr ? *real : 0.0;
}

bool IsText(const VectorElement& element) {
  return std::holds_alternative<std::string>(element);
}

bool Equals(const VectorElement& a, const VectorElement& b) {
  if (IsText(a) || IsText(b) || a.index() == b.index()) return a == b;
  return AsNumber(a) == AsNumber(b);
}

bool Less(const VectorElement& a, const VectorElement& b) {
  if (IsText(a) || IsText(b) || a.index() == b.index()) {
    // The alternatives are in the order of SQL, texts last.
    return IsText(a) == IsText(b) ? a < b : IsText(b);
  }
  return AsNumber(a) < AsNumber(b);
}

absl::Status NoVector() {
  return absl::InvalidArgumentError(
      "the first argument of a vec_ function must be a vector");
}

absl::StatusOr<std::optional<VectorElement>> FindExtreme(absl::string_view json,
                                                         bool least) {
  std::optional<VectorElement> best;
  const bool read = ArrayReader(json).Read([&](const VectorElement& e) {
    if (!best || (least ? Less(e, *best) : Less(*best, e))) best = e;
  });
  if (!read) return NoVector();
  return best;
}

}  // namespace

absl::StatusOr<int64_t> CountInVector(absl::string_view json,
                                      const VectorElement& value) {
  int64_t equal = 0;
  const bool read = ArrayReader(json).Read([&](const VectorElement& e) {
    if (Equals(e, value)) ++equal;
  });
  if (!read) return NoVector();
  return equal;
}

absl::StatusOr<VectorElement> SumVector(absl::string_view json) {
  int64_t integers = 0;
  double reals = 0.0;
  bool only_integers = true;
  bool any_text = false;
  const bool read = ArrayReader(json).Read([&](const VectorElement& e) {
    any_text = any_text || IsText(e);
    const int64_t* const integer = std::get_if<int64_t>(&e);
    only_integers = only_integers && integer != nullptr &&
                    !__builtin_add_overflow(integers, *integer, &integers);
    reals += AsNumber(e);
  });
  if (!read) return NoVector();
  if (any_text) return absl::InvalidArgumentError("vec_sum of strings");
  if (only_integers) return VectorElement(integers);
  return VectorElement(reals);
}

absl::StatusOr<std::optional<VectorElement>> FindLeast(absl::string_view json) {
  return FindExtreme(json, true);
}

absl::StatusOr<std::optional<VectorElement>> FindGreatest(
    absl::string_view json) {
  return FindExtreme(json, false);
}

}  // namespace cubicml
