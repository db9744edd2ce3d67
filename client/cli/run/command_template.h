// SPDX-License-Identifier: Apache-2.0
//
// The command of `cubicml run`, with places for the configuration:
//   {tp}           the value of the parameter tp
//   {sharding}     a vector: full,grad,none     {sharding[1]}  one element
//   {flags}        a word of its own: --NAME=VALUE for every active parameter
//   {params_file} {metrics_file} {trial} {study}
//   {{tp}}         the text {tp}
// Braces around anything but a name stay as they are, as in JSON or awk.

#ifndef CUBICML_CLIENT_CLI_RUN_COMMAND_TEMPLATE_H_
#define CUBICML_CLIENT_CLI_RUN_COMMAND_TEMPLATE_H_

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/client/values.h"

namespace cubicml {

// What a command is filled with.
struct TemplateValues {
  // Of the parameters that are active, for {flags}.
  Values active;
  // For {NAME}: also those that are not active, with their defaults.
  Values parameters;
  // {trial}, {study}, {params_file}, {metrics_file}.
  std::map<std::string, std::string> words;
};

// Immutable.
class CommandTemplate {
 public:
  // INVALID_ARGUMENT for {flags} within a word.
  static absl::StatusOr<CommandTemplate> Parse(std::vector<std::string> words);

  // INVALID_ARGUMENT, with a suggestion, for a placeholder that is neither a
  // parameter nor one of our own words.
  absl::Status Check(std::span<const absl::string_view> parameters) const;

  // The parameters that the command names.
  const std::set<std::string>& parameters() const { return parameters_; }
  // Of these parameters, those that the command lets the job find only in its
  // environment, as far as the words tell: none when the command names {flags},
  // {params_file} or $CUBICML_PARAMS_FILE.
  std::vector<std::string> FindLeftOut(
      std::span<const absl::string_view> parameters) const;
  // Does the command name this word of ours, such as "params_file"?
  bool Names(const std::string& word) const { return own_.count(word) > 0; }

  // INVALID_ARGUMENT when a value is missing, or an index is out of range.
  absl::StatusOr<std::vector<std::string>> Expand(
      const TemplateValues& values) const;

 private:
  struct Piece {
    std::string text;  // literal, or the name of a placeholder
    bool placeholder = false;
    int index = -1;  // of {name[index]}
  };
  static std::vector<Piece> ParseWord(absl::string_view word);
  static absl::StatusOr<std::string> ValueOf(const Piece& piece,
                                             const TemplateValues& values);

  std::vector<std::vector<Piece>> words_;
  std::string text_;  // of all words
  std::set<std::string> parameters_;
  std::set<std::string> own_;  // words of ours
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_RUN_COMMAND_TEMPLATE_H_
