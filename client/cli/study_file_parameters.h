// SPDX-License-Identifier: Apache-2.0
//
// The parts of study files that describe parameters and context, and the small
// readers that study_file.cc shares with them.

#ifndef CUBICML_CLIENT_CLI_STUDY_FILE_PARAMETERS_H_
#define CUBICML_CLIENT_CLI_STUDY_FILE_PARAMETERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/yaml_node.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

enum Presence { kRequired, kOptional };

absl::Status ReadText(const YamlNode& map, absl::string_view key,
                      Presence presence, std::string* text);
absl::StatusOr<int32_t> ReadInt32(const YamlNode& node);

// The number that belongs to the word; the error lists the words.
absl::StatusOr<int> ReadWord(
    const YamlNode& node,
    std::span<const std::pair<absl::string_view, int>> words);

// An integer as a double; others as they are.
v1::Value AsNumber(const v1::Value& value);
// Is the parameter or context field of the study real-valued?
bool IsNumberColumn(const v1::Study& study, absl::string_view name);

absl::Status ReadParameter(const YamlNode& node, v1::Parameter* parameter);
absl::Status ReadContextField(const YamlNode& node, v1::ContextField* field);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_STUDY_FILE_PARAMETERS_H_
