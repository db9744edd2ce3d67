// SPDX-License-Identifier: Apache-2.0

#include "storage/filter.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace cubicml {
namespace {

using Node = Filter::Node;

absl::Status ErrorAt(size_t position, absl::string_view message) {
  return FieldError("filter",
                    absl::StrCat("at byte ", position, ": ", message));
}

struct Token {
  enum class Kind { kEnd, kWord, kText, kOperator, kOpen, kClose };
  Kind kind = Kind::kEnd;
  std::string text;  // of kText without quotes and escapes
  size_t position = 0;
};

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '+' || c == '.' || c == ':' || c == '/';
}

// Cuts the text into tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  absl::StatusOr<Token> Next() {
    while (at_ < text_.size() &&
           absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
    Token token;
    token.position = at_;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (c == '(' || c == ')') {
      ++at_;
      token.kind = c == '(' ? Token::Kind::kOpen : Token::Kind::kClose;
      return token;
    }
    if (c == '=' || c == '!' || c == '<' || c == '>') {
      return NextOperator(std::move(token));
    }
    if (c == '"' || c == '\'') {
      token.kind = Token::Kind::kText;
      CUBICML_ASSIGN_OR_RETURN(token.text, Quoted());
      return token;
    }
    if (IsWordByte(c)) return NextWord(std::move(token));
    return ErrorAt(at_, "unexpected character");
  }

 private:
  absl::StatusOr<Token> NextOperator(Token token) {
    token.kind = Token::Kind::kOperator;
    token.text = std::string(1, text_[at_++]);
    if (token.text != "=" && at_ < text_.size() && text_[at_] == '=') {
      token.text += text_[at_++];
    }
    if (token.text == "!") {
      return ErrorAt(token.position, "'!' must be followed by '='");
    }
    return token;
  }

  // A word; one that ends with '.' takes a quoted key: labels."a b".
  absl::StatusOr<Token> NextWord(Token token) {
    token.kind = Token::Kind::kWord;
    while (at_ < text_.size() && IsWordByte(text_[at_])) {
      token.text += text_[at_++];
    }
    if (token.text.back() == '.' && at_ < text_.size() &&
        (text_[at_] == '"' || text_[at_] == '\'')) {
      CUBICML_ASSIGN_OR_RETURN(const std::string key, Quoted());
      token.text += key;
    }
    return token;
  }

  absl::StatusOr<std::string> Quoted() {
    const size_t start = at_;
    const char quote = text_[at_++];
    std::string raw;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) raw += text_[at_++];
      raw += text_[at_++];
    }
    if (at_ == text_.size()) return ErrorAt(start, "the string does not end");
    ++at_;
    std::string text;
    std::string error;
    if (!absl::CUnescape(raw, &text, &error)) {
      return ErrorAt(start, absl::StrCat("bad string: ", error));
    }
    if (!IsValidUtf8(text)) return ErrorAt(start, "the string is not UTF-8");
    return text;
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

const FilterField* FindField(std::span<const FilterField> fields,
                             absl::string_view name, std::string* key) {
  for (const FilterField& field : fields) {
    if (!absl::EndsWith(field.name, ".")) {
      if (field.name == name) return &field;
    } else if (name.size() > field.name.size() &&
               absl::StartsWith(name, field.name)) {
      *key = std::string(name.substr(field.name.size()));
      return &field;
    }
  }
  return nullptr;
}

absl::StatusOr<FilterValue> ParseBoolean(const Token& token) {
  if (token.text == "true") return FilterValue(int64_t{1});
  if (token.text == "false") return FilterValue(int64_t{0});
  return ErrorAt(token.position, "expected true or false");
}

absl::StatusOr<FilterValue> ParseEnum(const Token& token,
                                      const FilterField& field) {
  if (field.values->FindValueByName(token.text) != nullptr) {
    return FilterValue(token.text);
  }
  std::vector<std::string> names;
  for (int i = 0; i < field.values->value_count(); ++i) {
    names.push_back(field.values->value(i)->name());
  }
  return ErrorAt(token.position,
                 absl::StrCat("expected one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<FilterValue> ParseTime(const Token& token) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, token.text, &time, &error) ||
      time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    return ErrorAt(token.position,
                   "expected a time such as 2024-05-01T00:00:00Z");
  }
  return FilterValue(absl::ToUnixMicros(time));
}

absl::StatusOr<FilterValue> ParseLiteral(const Token& token,
                                         const FilterField& field) {
  if (token.kind != Token::Kind::kWord && token.kind != Token::Kind::kText) {
    return ErrorAt(token.position, "expected a value");
  }
  int64_t integer = 0;
  double real = 0;
  switch (field.type) {
    case FilterType::kInteger:
      if (absl::SimpleAtoi(token.text, &integer)) return FilterValue(integer);
      return ErrorAt(token.position, "expected a 64-bit integer");
    case FilterType::kReal:
      if (absl::SimpleAtod(token.text, &real) && std::isfinite(real)) {
        return FilterValue(real);
      }
      return ErrorAt(token.position, "expected a finite number");
    case FilterType::kBoolean:
      return ParseBoolean(token);
    case FilterType::kEnum:
      return ParseEnum(token, field);
    case FilterType::kTime:
      return ParseTime(token);
    case FilterType::kString:
      break;
  }
  return FilterValue(token.text);
}

// Recursive descent; the depth is bounded, so the stack is too.
class Parser {
 public:
  Parser(absl::string_view text, std::span<const FilterField> fields)
      : lexer_(text), fields_(fields) {}

  absl::StatusOr<Node> ParseAll() {
    CUBICML_RETURN_IF_ERROR(Advance());
    if (token_.kind == Token::Kind::kEnd) return Node();
    CUBICML_ASSIGN_OR_RETURN(Node root, ParseChain(0));
    if (token_.kind != Token::Kind::kEnd) {
      return ErrorAt(token_.position, "expected AND, OR or the end");
    }
    return root;
  }

 private:
  absl::Status Advance() {
    CUBICML_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return absl::OkStatus();
  }

  bool AtWord(absl::string_view word) const {
    return token_.kind == Token::Kind::kWord && token_.text == word;
  }

  absl::StatusOr<Node> ParseChain(int depth) {
    if (depth > kMaxFilterDepth) {
      return ErrorAt(token_.position,
                     absl::StrCat("nested deeper than ", kMaxFilterDepth));
    }
    CUBICML_ASSIGN_OR_RETURN(Node first, ParseTerm(depth));
    if (!AtWord("AND") && !AtWord("OR")) return first;
    const std::string word = token_.text;
    Node chain;
    chain.kind = word == "AND" ? Node::Kind::kAnd : Node::Kind::kOr;
    chain.children.push_back(std::move(first));
    while (AtWord(word)) {
      CUBICML_RETURN_IF_ERROR(Advance());
      CUBICML_ASSIGN_OR_RETURN(Node next, ParseTerm(depth));
      chain.children.push_back(std::move(next));
    }
    if (AtWord("AND") || AtWord("OR")) {
      return ErrorAt(token_.position, "AND and OR are mixed: add parentheses");
    }
    return chain;
  }

  absl::StatusOr<Node> ParseTerm(int depth) {
    if (AtWord("NOT")) {
      if (depth >= kMaxFilterDepth) {
        return ErrorAt(token_.position,
                       absl::StrCat("nested deeper than ", kMaxFilterDepth));
      }
      CUBICML_RETURN_IF_ERROR(Advance());
      CUBICML_ASSIGN_OR_RETURN(Node child, ParseTerm(depth + 1));
      Node node;
      node.kind = Node::Kind::kNot;
      node.children.push_back(std::move(child));
      return node;
    }
    if (token_.kind == Token::Kind::kOpen) {
      CUBICML_RETURN_IF_ERROR(Advance());
      CUBICML_ASSIGN_OR_RETURN(Node node, ParseChain(depth + 1));
      if (token_.kind != Token::Kind::kClose) {
        return ErrorAt(token_.position, "expected ')'");
      }
      CUBICML_RETURN_IF_ERROR(Advance());
      return node;
    }
    return ParseComparison();
  }

  absl::StatusOr<Node> ParseComparison() {
    if (token_.kind != Token::Kind::kWord) {
      return ErrorAt(token_.position, "expected the name of a field");
    }
    Node node;
    node.kind = Node::Kind::kComparison;
    node.field = FindField(fields_, token_.text, &node.key);
    if (node.field == nullptr) {
      std::vector<std::string> names;
      for (const FilterField& field : fields_) {
        names.push_back(absl::StrCat(
            field.name, absl::EndsWith(field.name, ".") ? "KEY" : ""));
      }
      return ErrorAt(token_.position, absl::StrCat("unknown field; there are ",
                                                   absl::StrJoin(names, ", ")));
    }
    CUBICML_RETURN_IF_ERROR(Advance());
    if (token_.kind != Token::Kind::kOperator) {
      return ErrorAt(token_.position, "expected =, !=, <, <=, > or >=");
    }
    node.op = token_.text;
    const bool ordered = node.field->type != FilterType::kEnum &&
                         node.field->type != FilterType::kBoolean;
    if (!ordered && node.op != "=" && node.op != "!=") {
      return ErrorAt(token_.position,
                     absl::StrCat(node.field->name, " has only = and !="));
    }
    CUBICML_RETURN_IF_ERROR(Advance());
    CUBICML_ASSIGN_OR_RETURN(node.value, ParseLiteral(token_, *node.field));
    CUBICML_RETURN_IF_ERROR(Advance());
    return node;
  }

  Lexer lexer_;
  const std::span<const FilterField> fields_;
  Token token_;
};

bool Compare(const FilterValue& left, absl::string_view op,
             const FilterValue& right) {
  if (std::holds_alternative<std::monostate>(left)) return false;
  if (op == "=") return left == right;
  if (op == "!=") return left != right;
  if (op == "<") return left < right;
  if (op == "<=") return left <= right;
  if (op == ">") return left > right;
  return left >= right;
}

bool NodeMatches(const Node& node, const Filter::Lookup& lookup) {
  switch (node.kind) {
    case Node::Kind::kComparison:
      return Compare(lookup(*node.field, node.key), node.op, node.value);
    case Node::Kind::kNot:
      return !NodeMatches(node.children[0], lookup);
    case Node::Kind::kAnd:
      for (const Node& child : node.children) {
        if (!NodeMatches(child, lookup)) return false;
      }
      return true;
    case Node::Kind::kOr:
      for (const Node& child : node.children) {
        if (NodeMatches(child, lookup)) return true;
      }
      return false;
  }
  return false;
}

// Column names and operators come from our tables, never from the text.
void AppendComparison(const Node& node, SqlCondition* out) {
  if (node.key.empty()) {
    absl::StrAppend(&out->sql, node.field->column, " ", node.op, " ?");
  } else {
    absl::StrAppend(&out->sql, "EXISTS (SELECT 1 FROM json_each(",
                    node.field->column, ") WHERE key = ? AND atom ", node.op,
                    " ?)");
    out->values.emplace_back(node.key);
  }
  out->values.push_back(node.value);
}

void AppendSql(const Node& node, SqlCondition* out) {
  switch (node.kind) {
    case Node::Kind::kComparison:
      return AppendComparison(node, out);
    case Node::Kind::kNot:
      absl::StrAppend(&out->sql, "((");
      AppendSql(node.children[0], out);
      absl::StrAppend(&out->sql, ") IS NOT TRUE)");
      return;
    case Node::Kind::kAnd:
    case Node::Kind::kOr:
      break;
  }
  if (node.children.empty()) {
    absl::StrAppend(&out->sql, "1");
    return;
  }
  const absl::string_view word =
      node.kind == Node::Kind::kAnd ? " AND " : " OR ";
  absl::string_view separator = "(";
  for (const Node& child : node.children) {
    absl::StrAppend(&out->sql, separator);
    AppendSql(child, out);
    separator = word;
  }
  absl::StrAppend(&out->sql, ")");
}

}  // namespace

absl::StatusOr<Filter> Filter::Parse(absl::string_view text,
                                     std::span<const FilterField> fields) {
  if (text.size() > kMaxFilterBytes) {
    return FieldError("filter",
                      absl::StrCat("longer than ", kMaxFilterBytes, " bytes"));
  }
  CUBICML_ASSIGN_OR_RETURN(Node root, Parser(text, fields).ParseAll());
  return Filter(std::move(root));
}

bool Filter::Matches(const Lookup& lookup) const {
  return NodeMatches(root_, lookup);
}

SqlCondition Filter::ToSql() const {
  SqlCondition condition;
  AppendSql(root_, &condition);
  return condition;
}

}  // namespace cubicml
