// SPDX-License-Identifier: Apache-2.0
//
// Writes the JSON columns, which SQLite's json functions read. Numbers keep
// their type: 8 is an integer, 8.0 a real.

#ifndef CUBICML_STORAGE_JSON_TEXT_H_
#define CUBICML_STORAGE_JSON_TEXT_H_

#include <google/protobuf/map.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// INVALID_ARGUMENT with `path` when the text is not UTF-8.
absl::Status CheckUtf8(absl::string_view text, absl::string_view path);

// Appends a string with its quotes. REQUIRES: UTF-8.
void AppendJsonString(absl::string_view text, std::string* out);
// The shortest decimal that reads back as the same double. NaN is null;
// infinity is 9e999, which SQLite and Python read as infinity.
void AppendJsonNumber(double value, std::string* out);

using ValueMap = google::protobuf::Map<std::string, v1::Value>;
using NumberMap = google::protobuf::Map<std::string, double>;
using StringMap = google::protobuf::Map<std::string, std::string>;

// Each appends an object with sorted keys; INVALID_ARGUMENT with `path` when a
// key or string is not UTF-8.
absl::Status AppendJsonObject(const ValueMap& map, absl::string_view path,
                              std::string* out);
absl::Status AppendJsonObject(const NumberMap& map, absl::string_view path,
                              std::string* out);
absl::Status AppendJsonObject(const StringMap& map, absl::string_view path,
                              std::string* out);

}  // namespace cubicml

#endif  // CUBICML_STORAGE_JSON_TEXT_H_
