// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/result_spool.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/output.h"
#include "cubicml/client/errors.h"

namespace cubicml {
namespace {

namespace fs = std::filesystem;

// More results than anyone will run jobs without looking at the messages.
constexpr size_t kMaxResults = 10'000;

std::vector<fs::path> ResultsIn(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() != ".json") continue;
    found.emplace_back(it->last_write_time(ignored), it->path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

// Nothing when another process has delivered it; DATA_LOSS when it is broken.
absl::StatusOr<std::optional<v1::CompleteTrialRequest>> ReadResult(
    const fs::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  const std::string json(std::istreambuf_iterator<char>(file), {});
  v1::CompleteTrialRequest request;
  if (!google::protobuf::util::JsonStringToMessage(json, &request).ok()) {
    return absl::DataLossError(absl::StrCat(path.string(), " cannot be read"));
  }
  return request;
}

absl::Status Sync(const std::string& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : absl::ErrnoToStatus(error, path);
}

void Refuse(const fs::path& path) {
  std::error_code ignored;
  fs::rename(path, path.string() + ".refused", ignored);
}

}  // namespace

std::string FileNameOf(absl::string_view server) {
  std::string name(server);
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                       (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view text) {
  std::error_code error;
  const std::string folder = fs::path(path).parent_path();
  fs::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot make ", folder));
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, temporary);
  absl::Status status = WriteAll(descriptor, text);
  if (status.ok() && fsync(descriptor) != 0) {
    status = absl::ErrnoToStatus(errno, temporary);
  }
  close(descriptor);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return Sync(folder, O_RDONLY | O_DIRECTORY);
}

ResultSpool::ResultSpool(std::string folder, absl::string_view server)
    : folder_(absl::StrCat(folder, "/", FileNameOf(server))) {}

absl::Status ResultSpool::Add(const v1::CompleteTrialRequest& request) const {
  if (ResultsIn(folder_).size() >= kMaxResults) {
    return absl::ResourceExhaustedError(
        absl::StrCat(folder_, " holds ", kMaxResults, " results already"));
  }
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(request, &json, options)
           .ok()) {
    return absl::InternalError("the result cannot be written as JSON");
  }
  return WriteFileDurably(
      absl::StrCat(folder_, "/", request.request_id(), ".json"), json);
}

bool ResultSpool::Holds(absl::string_view trial) const {
  const std::vector<fs::path> paths = ResultsIn(folder_);
  return std::any_of(paths.begin(), paths.end(), [&](const fs::path& path) {
    const auto request = ReadResult(path);
    return request.ok() && request->has_value() && (*request)->name() == trial;
  });
}

ResultSpool::Report ResultSpool::Deliver(
    const std::function<absl::Status(const v1::CompleteTrialRequest&)>& send)
    const {
  Report report;
  const std::vector<fs::path> paths = ResultsIn(folder_);
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto request = ReadResult(paths[i]);
    if (!request.ok()) {
      Refuse(paths[i]);
      ++report.refused;
      report.last_refusal = request.status();
      continue;
    }
    if (!request->has_value()) continue;
    const absl::Status status = send(**request);
    if (status.ok()) {
      std::error_code ignored;
      fs::remove(paths[i], ignored);
      ++report.delivered;
    } else if (absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
               absl::IsInvalidArgument(status)) {
      Refuse(paths[i]);
      ++report.refused;
      report.last_refusal = status;
    } else {
      report.left = static_cast<int>(paths.size() - i);
      break;
    }
  }
  return report;
}

}  // namespace cubicml
