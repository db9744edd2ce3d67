// SPDX-License-Identifier: Apache-2.0

#include "predictor/expression_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

// Identifiers of SQLite hold letters, digits, '_', '$' and all that is not
// ASCII.
bool IsIdentifierCharacter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '_' || c == '$' || byte >= 0x80;
}

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<std::string>> Scan() {
    while (at_ < text_.size()) CUBICML_RETURN_IF_ERROR(ScanToken());
    if (depth_ != 0) return Refuse("a parenthesis is not closed");
    if (!any_) return Refuse("is empty");
    std::sort(identifiers_.begin(), identifiers_.end());
    identifiers_.erase(std::unique(identifiers_.begin(), identifiers_.end()),
                       identifiers_.end());
    return std::move(identifiers_);
  }

 private:
  static absl::Status Refuse(absl::string_view why) {
    return absl::InvalidArgumentError(why);
  }

  char Peek(size_t ahead) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  absl::Status ScanToken() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
      return absl::OkStatus();
    }
    any_ = true;
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return Refuse("holds a control character");
    }
    if ((c == '-' && Peek(1) == '-') || (c == '/' && Peek(1) == '*')) {
      return Refuse("holds a comment; use the description instead");
    }
    switch (c) {
      case '\'':
      case '"':
      case '`':
        return ScanQuoted(c);
      case '[':
        return ScanQuoted(']');
      case ';':
        return Refuse("holds a semicolon; it must be one expression");
      case '?':
      case ':':
      case '@':
      case '#':
      case '$':
        return Refuse("holds a placeholder; use the names of parameters");
      case '(':
        ++depth_;
        ++at_;
        return absl::OkStatus();
      case ')':
        ++at_;
        return --depth_ < 0 ? Refuse("closes a parenthesis that is not open")
                            : absl::OkStatus();
      default:
        break;
    }
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (digit || IsIdentifierCharacter(c)) return ScanWord(!digit);
    ++at_;
    return absl::OkStatus();
  }

  // A quote within is doubled, but for [brackets].
  absl::Status ScanQuoted(char close) {
    std::string content;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != close) {
        content.push_back(text_[at_]);
      } else if (close != ']' && Peek(1) == close) {
        content.push_back(close);
        ++at_;
      } else {
        ++at_;
        if (close != '\'') AddIdentifier(content);
        return absl::OkStatus();
      }
      if (text_[at_] == '\0') return Refuse("holds a NUL character");
    }
    return Refuse(absl::StrCat("a quote is not closed: ", content));
  }

  absl::Status ScanWord(bool identifier) {
    const size_t start = at_;
    while (at_ < text_.size() && IsIdentifierCharacter(text_[at_])) ++at_;
    if (!identifier) return absl::OkStatus();
    const absl::string_view word = text_.substr(start, at_ - start);
    if (absl::EqualsIgnoreCase(word, "select") ||
        absl::EqualsIgnoreCase(word, "values")) {
      return Refuse("holds a subquery; it may use parameters and context only");
    }
    AddIdentifier(word);
    return absl::OkStatus();
  }

  void AddIdentifier(absl::string_view word) {
    identifiers_.push_back(absl::AsciiStrToLower(word));
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool any_ = false;
  std::vector<std::string> identifiers_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ScanExpression(
    absl::string_view text) {
  if (!IsValidUtf8(text)) return absl::InvalidArgumentError("is not UTF-8");
  return Scanner(text).Scan();
}

}  // namespace cubicml
