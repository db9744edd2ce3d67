// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/command_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/cli/closest_name.h"
#include "client/cli/run/job_files.h"

namespace cubicml {
namespace {

constexpr absl::string_view kFlags = "flags";
constexpr absl::string_view kOwnWords[] = {kFlags, "metrics_file",
                                           "params_file", "study", "trial"};
constexpr absl::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool IsOwnWord(absl::string_view name) {
  return std::find(std::begin(kOwnWords), std::end(kOwnWords), name) !=
         std::end(kOwnWords);
}

struct Placeholder {
  absl::string_view name;
  int index = -1;
  size_t length = 0;  // of the whole, with its braces
};

// Does `text` have the identifier, not only as a part of a longer one?
bool HasIdentifier(absl::string_view text, absl::string_view identifier) {
  const auto is_name = [&](size_t i) {
    return i < text.size() && kNameCharacters.find(text[i]) != text.npos;
  };
  for (size_t found = text.find(identifier); found != text.npos;
       found = text.find(identifier, found + 1)) {
    if (!(found > 0 && is_name(found - 1)) &&
        !is_name(found + identifier.size())) {
      return true;
    }
  }
  return false;
}

// The placeholder at the start of `text`, if there is one.
std::optional<Placeholder> MatchPlaceholder(absl::string_view text) {
  const size_t name_end =
      std::min(text.find_first_not_of(kNameCharacters, 1), text.size());
  Placeholder found;
  found.name = text.substr(1, name_end - 1);
  if (found.name.empty() ||
      absl::ascii_isdigit(static_cast<unsigned char>(found.name.front()))) {
    return std::nullopt;
  }
  size_t end = name_end;
  if (end < text.size() && text[end] == '[') {
    const size_t close = text.find(']', end);
    if (close == absl::string_view::npos ||
        !absl::SimpleAtoi(text.substr(end + 1, close - end - 1),
                          &found.index) ||
        found.index < 0) {
      return std::nullopt;
    }
    end = close + 1;
  }
  if (end >= text.size() || text[end] != '}') return std::nullopt;
  found.length = end + 1;
  return found;
}

}  // namespace

std::vector<CommandTemplate::Piece> CommandTemplate::ParseWord(
    absl::string_view word) {
  std::vector<Piece> pieces;
  std::string literal;
  int escapes = 0;  // {{ that wait for their }}
  size_t i = 0;
  while (i < word.size()) {
    const absl::string_view rest = word.substr(i);
    if (absl::StartsWith(rest, "{{")) {
      literal += '{';
      ++escapes;
      i += 2;
    } else if (escapes > 0 && absl::StartsWith(rest, "}}")) {
      literal += '}';
      --escapes;
      i += 2;
    } else if (const auto found =
                   rest[0] == '{' ? MatchPlaceholder(rest) : std::nullopt) {
      if (!literal.empty()) {
        pieces.push_back({std::exchange(literal, ""), false, -1});
      }
      pieces.push_back({std::string(found->name), true, found->index});
      i += found->length;
    } else {
      literal += rest[0];
      ++i;
    }
  }
  if (!literal.empty() || pieces.empty()) {
    pieces.push_back({std::move(literal), false, -1});
  }
  return pieces;
}

absl::StatusOr<CommandTemplate> CommandTemplate::Parse(
    std::vector<std::string> words) {
  CommandTemplate result;
  result.text_ = absl::StrJoin(words, "\n");
  for (const std::string& word : words) {
    std::vector<Piece> pieces = ParseWord(word);
    for (const Piece& piece : pieces) {
      if (!piece.placeholder) continue;
      if (piece.text == kFlags && pieces.size() > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("{flags} in '", word, "' must be a word of its own"));
      }
      (IsOwnWord(piece.text) ? result.own_ : result.parameters_)
          .insert(piece.text);
    }
    result.words_.push_back(std::move(pieces));
  }
  return result;
}

absl::Status CommandTemplate::Check(
    std::span<const absl::string_view> parameters) const {
  std::vector<absl::string_view> known(parameters.begin(), parameters.end());
  known.insert(known.end(), std::begin(kOwnWords), std::end(kOwnWords));
  for (const std::string& name : parameters_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("{", name, "} in the command is no parameter of the study",
                     SuggestName(name, known), " ({{", name, "}} is the text {",
                     name, "})"));
  }
  return absl::OkStatus();
}

std::vector<std::string> CommandTemplate::FindLeftOut(
    std::span<const absl::string_view> parameters) const {
  if (Names("flags") || Names("params_file") ||
      HasIdentifier(text_, "CUBICML_PARAMS_FILE")) {
    return {};
  }
  std::vector<std::string> left_out;
  for (const absl::string_view name : parameters) {
    const std::string parameter(name);
    if (parameters_.count(parameter) > 0 ||
        HasIdentifier(text_, ParameterVariable(parameter))) {
      continue;
    }
    left_out.push_back(parameter);
  }
  return left_out;
}

absl::StatusOr<std::string> CommandTemplate::ValueOf(
    const Piece& piece, const TemplateValues& values) {
  if (const auto word = values.words.find(piece.text);
      word != values.words.end()) {
    return word->second;
  }
  const auto found = values.parameters.find(piece.text);
  if (found == values.parameters.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no value for {", piece.text, "}"));
  }
  if (piece.index < 0) return FormatValue(found->second);
  const v1::ValueList& list = found->second.list_value();
  if (piece.index >= list.values_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("{", piece.text, "[", piece.index, "]}: ", piece.text,
                     found->second.has_list_value()
                         ? absl::StrCat(" has ", list.values_size(), " values")
                         : " is not a vector"));
  }
  return FormatValue(list.values(piece.index));
}

absl::StatusOr<std::vector<std::string>> CommandTemplate::Expand(
    const TemplateValues& values) const {
  std::vector<std::string> expanded;
  for (const std::vector<Piece>& word : words_) {
    if (word[0].placeholder && word[0].text == kFlags) {
      for (const auto& [name, value] : values.active) {
        expanded.push_back(absl::StrCat("--", name, "=", FormatValue(value)));
      }
      continue;
    }
    std::string text;
    for (const Piece& piece : word) {
      if (!piece.placeholder) {
        text += piece.text;
        continue;
      }
      CUBICML_ASSIGN_OR_RETURN(const std::string value, ValueOf(piece, values));
      text += value;
    }
    expanded.push_back(std::move(text));
  }
  return expanded;
}

}  // namespace cubicml
