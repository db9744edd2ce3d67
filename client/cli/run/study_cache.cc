// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/study_cache.h"

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/run/result_spool.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

absl::Status Save(const google::protobuf::Message& message,
                  const std::string& path) {
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json).ok()) {
    return absl::InternalError("cannot be written as JSON");
  }
  return WriteFileDurably(path, json);
}

bool Load(const std::string& path, google::protobuf::Message* message) {
  std::ifstream file(path);
  if (!file) return false;
  const std::string json(std::istreambuf_iterator<char>(file), {});
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a later version
  return google::protobuf::util::JsonStringToMessage(json, message, options)
      .ok();
}

// Do the values that both have agree?
bool Agree(const Values& given, const ValueMap& filled) {
  for (const auto& [name, value] : given) {
    const auto found = filled.find(name);
    if (found == filled.end() ||
        FormatValue(found->second) != FormatValue(value)) {
      return false;
    }
  }
  return true;
}

}  // namespace

StudyCache::StudyCache(std::string folder, absl::string_view server)
    : folder_(absl::StrCat(folder, "/", FileNameOf(server))) {}

std::string StudyCache::PathOf(absl::string_view study_name,
                               absl::string_view extension) const {
  return absl::StrCat(folder_, "/", StudyIdOf(study_name), extension);
}

absl::Status StudyCache::SaveStudy(const v1::Study& study) const {
  return Save(study, PathOf(study.name(), ".study.json"));
}

std::optional<v1::Study> StudyCache::LoadStudy(
    absl::string_view study_name) const {
  v1::Study study;
  if (!Load(PathOf(study_name, ".study.json"), &study)) return std::nullopt;
  return study;
}

absl::Status StudyCache::SaveBaseline(const v1::Trial& trial) const {
  // The last one of any context: jobs of one launcher are of one kind, and a
  // file for each context would have no bound.
  return Save(trial, PathOf(trial.name(), ".baseline.json"));
}

std::optional<Values> StudyCache::LoadBaseline(absl::string_view study_name,
                                               const Values& context) const {
  v1::Trial trial;
  if (!Load(PathOf(study_name, ".baseline.json"), &trial) ||
      !Agree(context, trial.context())) {
    return std::nullopt;
  }
  return Values(trial.parameters().begin(), trial.parameters().end());
}

}  // namespace cubicml
