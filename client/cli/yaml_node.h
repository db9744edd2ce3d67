// SPDX-License-Identifier: Apache-2.0
//
// A YAML document whose every error says FILE:LINE and the field. Turns the
// exceptions of yaml-cpp into statuses.

#ifndef CUBICML_CLIENT_CLI_YAML_NODE_H_
#define CUBICML_CLIENT_CLI_YAML_NODE_H_

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// A node and where it stands. A value type; not thread-safe.
class YamlNode {
 public:
  // The only document of the text. INVALID_ARGUMENT with the line otherwise.
  static absl::StatusOr<YamlNode> Parse(absl::string_view text,
                                        absl::string_view file_name);

  int line() const { return line_; }
  // "parameters[2].scale"; empty for the document.
  const std::string& path() const { return path_; }
  bool IsMap() const { return node_.IsMap(); }
  bool IsList() const { return node_.IsSequence(); }

  // INVALID_ARGUMENT "FILE:LINE: path: message".
  absl::Status Error(absl::string_view message) const;

  // A map whose keys are unique and all among `known`.
  absl::Status CheckMap(std::span<const absl::string_view> known) const;
  // Keys of a map in the order of the file.
  std::vector<std::string> Keys() const;
  std::optional<YamlNode> Find(absl::string_view key) const;
  absl::StatusOr<YamlNode> Get(absl::string_view key) const;
  absl::StatusOr<std::vector<YamlNode>> Elements() const;

  // A scalar, by YAML 1.2; a quoted one is a string. Not null.
  absl::StatusOr<v1::Value> Scalar() const;
  absl::StatusOr<std::string> Text() const;  // any scalar, as written
  absl::StatusOr<int64_t> Integer() const;
  absl::StatusOr<double> Number() const;
  absl::StatusOr<bool> Truth() const;

 private:
  YamlNode(YAML::Node node, std::string path, int line,
           std::shared_ptr<const std::string> file_name);

  YAML::Node node_;
  std::string path_;
  int line_;
  std::shared_ptr<const std::string> file_name_;
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_CLI_YAML_NODE_H_
