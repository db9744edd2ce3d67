// SPDX-License-Identifier: Apache-2.0

#include "predictor/expression_text.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
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

struct Token {
  enum Kind { kName, kText, kOther };
  Kind kind = kOther;
  std::string text;  // a name's in lower case
};

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Scan() {
    while (at_ < text_.size()) CUBICML_RETURN_IF_ERROR(ScanToken());
    if (depth_ != 0) return Refuse("a parenthesis is not closed");
    if (tokens_.empty()) return Refuse("is empty");
    return std::move(tokens_);
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
        AddCharacter();
        return absl::OkStatus();
      case ')':
        AddCharacter();
        return --depth_ < 0 ? Refuse("closes a parenthesis that is not open")
                            : absl::OkStatus();
      default:
        break;
    }
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (digit || IsIdentifierCharacter(c)) return ScanWord(!digit);
    AddCharacter();
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
        if (close == '\'') {
          tokens_.push_back({Token::kText, std::move(content)});
        } else {
          AddName(content);
        }
        return absl::OkStatus();
      }
      if (text_[at_] == '\0') return Refuse("holds a NUL character");
    }
    return Refuse(absl::StrCat("a quote is not closed: ", content));
  }

  absl::Status ScanWord(bool identifier) {
    const size_t start = at_;
    while (at_ < text_.size() && IsIdentifierCharacter(text_[at_])) ++at_;
    const absl::string_view word = text_.substr(start, at_ - start);
    if (!identifier) {
      tokens_.push_back({Token::kOther, std::string(word)});
      return absl::OkStatus();
    }
    if (absl::EqualsIgnoreCase(word, "select") ||
        absl::EqualsIgnoreCase(word, "values")) {
      return Refuse("holds a subquery; it may use parameters and context only");
    }
    AddName(word);
    return absl::OkStatus();
  }

  void AddName(absl::string_view word) {
    tokens_.push_back({Token::kName, absl::AsciiStrToLower(word)});
  }

  void AddCharacter() {
    tokens_.push_back({Token::kOther, std::string(1, text_[at_])});
    ++at_;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Token> tokens_;
};

absl::StatusOr<std::vector<Token>> ScanTokens(absl::string_view text) {
  if (!IsValidUtf8(text)) return absl::InvalidArgumentError("is not UTF-8");
  return Scanner(text).Scan();
}

// The comparisons among the tokens of one expression.
class ComparisonFinder {
 public:
  explicit ComparisonFinder(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

  std::vector<TextComparison> Find() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      FindCount(i);
      if (!StartsAt(i)) continue;
      FindPair(i);
      FindList(i);
    }
    return std::move(found_);
  }

 private:
  // A token of no text beyond the end.
  const Token& At(size_t i) const {
    static const Token& none = *new Token();
    return i < tokens_.size() ? tokens_[i] : none;
  }
  bool Is(size_t i, Token::Kind kind) const {
    return i < tokens_.size() && tokens_[i].kind == kind;
  }
  bool IsWord(size_t i, absl::string_view word) const {
    return Is(i, Token::kName) && tokens_[i].text == word;
  }
  bool IsOther(size_t i, absl::string_view text) const {
    return Is(i, Token::kOther) && tokens_[i].text == text;
  }
  bool IsAnyWord(size_t i,
                 std::initializer_list<absl::string_view> words) const {
    return std::any_of(words.begin(), words.end(),
                       [&](absl::string_view word) { return IsWord(i, word); });
  }

  // Nothing before i, and nothing from i on, binds tighter than a comparison.
  bool StartsAt(size_t i) const {
    return i == 0 || IsOther(i - 1, "(") || IsOther(i - 1, ",") ||
           IsAnyWord(i - 1, {"and", "or", "not", "when", "then", "else"});
  }
  bool EndsAt(size_t i) const {
    return i == tokens_.size() || IsOther(i, ")") || IsOther(i, ",") ||
           IsAnyWord(i, {"and", "or", "when", "then", "else", "end"});
  }

  // How many tokens the operator of an equality at i has; 0 for none.
  size_t OperatorLength(size_t i) const {
    if (IsWord(i, "is")) return IsWord(i + 1, "not") ? 2 : 1;
    if (IsOther(i, "=")) return IsOther(i + 1, "=") ? 2 : 1;
    const bool unequal = (IsOther(i, "!") && IsOther(i + 1, "=")) ||
                         (IsOther(i, "<") && IsOther(i + 1, ">"));
    return unequal ? 2 : 0;
  }

  // mode = 'full', 'full' = mode
  void FindPair(size_t i) {
    const size_t length = OperatorLength(i + 1);
    const size_t other = i + 1 + length;
    if (length == 0 || !EndsAt(other + 1)) return;
    if (Is(i, Token::kName) && Is(other, Token::kText)) {
      found_.push_back({At(i).text, At(other).text});
    } else if (Is(i, Token::kText) && Is(other, Token::kName)) {
      found_.push_back({At(other).text, At(i).text});
    }
  }

  // mode NOT IN ('full', 'none')
  void FindList(size_t i) {
    size_t at = i + 1;
    if (IsWord(at, "not")) ++at;
    if (!Is(i, Token::kName) || !IsWord(at, "in") || !IsOther(at + 1, "(")) {
      return;
    }
    for (at += 2; Is(at, Token::kText) && EndsAt(at + 1); at += 2) {
      found_.push_back({At(i).text, At(at).text});
      if (IsOther(at + 1, ")")) return;
    }
  }

  // vec_count(mode, 'full')
  void FindCount(size_t i) {
    if (IsWord(i, "vec_count") && IsOther(i + 1, "(") &&
        Is(i + 2, Token::kName) && IsOther(i + 3, ",") &&
        Is(i + 4, Token::kText) && IsOther(i + 5, ")")) {
      found_.push_back({At(i + 2).text, At(i + 4).text, /*within=*/true});
    }
  }

  const std::vector<Token> tokens_;
  std::vector<TextComparison> found_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ScanExpression(
    absl::string_view text) {
  CUBICML_ASSIGN_OR_RETURN(std::vector<Token> tokens, ScanTokens(text));
  std::vector<std::string> identifiers;
  for (Token& token : tokens) {
    if (token.kind == Token::kName) {
      identifiers.push_back(std::move(token.text));
    }
  }
  std::sort(identifiers.begin(), identifiers.end());
  identifiers.erase(std::unique(identifiers.begin(), identifiers.end()),
                    identifiers.end());
  return identifiers;
}

absl::StatusOr<std::vector<TextComparison>> FindTextComparisons(
    absl::string_view text) {
  CUBICML_ASSIGN_OR_RETURN(std::vector<Token> tokens, ScanTokens(text));
  return ComparisonFinder(std::move(tokens)).Find();
}

}  // namespace cubicml
