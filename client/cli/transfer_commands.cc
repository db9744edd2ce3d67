// SPDX-License-Identifier: Apache-2.0

#include "client/cli/transfer_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "client/cli/json_views.h"
#include "client/cli/trial_tables.h"
#include "client/csv.h"

namespace cubicml {
namespace {

constexpr size_t kWriteBytes = 1 << 16;

bool IsJsonLines(const TransferOptions& options) {
  if (!options.format.empty()) return options.format == "jsonl";
  return absl::EndsWith(options.file, ".jsonl") ||
         absl::EndsWith(options.file, ".ndjson");
}

// Where an export goes: a file, or standard output for "-".
class Sink {
 public:
  static absl::StatusOr<Sink> Open(const std::string& path) {
    if (path == "-") return Sink(STDOUT_FILENO, false);
    const int descriptor =
        open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
    return Sink(descriptor, true);
  }
  Sink(Sink&& other) noexcept
      : descriptor_(other.descriptor_), owned_(other.owned_) {
    other.owned_ = false;
  }
  ~Sink() {
    if (owned_) close(descriptor_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  Sink& operator=(Sink&&) = delete;

  absl::Status Append(absl::string_view text) {
    buffer_.append(text.data(), text.size());
    return buffer_.size() < kWriteBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    const absl::Status written = WriteAll(descriptor_, buffer_);
    buffer_.clear();
    return written;
  }

 private:
  Sink(int descriptor, bool owned) : descriptor_(descriptor), owned_(owned) {}
  int descriptor_;
  bool owned_;
  std::string buffer_;
};

}  // namespace

absl::StatusOr<int> ExportTrials(CommandSession* session,
                                 const TransferOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  CUBICML_ASSIGN_OR_RETURN(Sink sink, Sink::Open(options.file));
  const bool json_lines = IsJsonLines(options);
  if (!json_lines) {
    CUBICML_RETURN_IF_ERROR(sink.Append(FormatCsvRow(ExportHeaders(study))));
  }
  int64_t count = 0;
  v1::ExportTrialsRequest request;
  request.set_parent(study.name());
  request.set_filter(options.filter);
  CUBICML_RETURN_IF_ERROR(
      session->client().ExportTrials(request, [&](const v1::Trial& trial) {
        ++count;
        return sink.Append(
            json_lines ? TrialToJson(trial).dump(
                             -1, ' ', false, Json::error_handler_t::replace) +
                             "\n"
                       : FormatCsvRow(ExportRow(study, trial)));
      }));
  CUBICML_RETURN_IF_ERROR(sink.Flush());
  session->Say(absl::StrCat("exported ", count, " trials"));
  return kExitOk;
}

absl::StatusOr<int> ImportTrials(CommandSession* session,
                                 const TransferOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  CUBICML_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  const absl::StatusOr<ImportedTrials> imported =
      IsJsonLines(options) ? ImportJsonLines(study, text)
                           : ImportCsv(study, text, options.status_column);
  if (!imported.ok()) return WithContext(imported.status(), options.file);
  if (imported->skipped > 0) {
    session->Say(absl::StrCat("skipped ", imported->skipped,
                              " trials that are no measurements"));
  }
  v1::ImportTrialsResponse response;
  if (!options.dry_run && !imported->trials.empty()) {
    CUBICML_ASSIGN_OR_RETURN(response, session->client().ImportTrials(
                                           study.name(), imported->trials));
  }
  for (const auto& refusal : response.refusals()) {
    const size_t index = static_cast<size_t>(refusal.index());
    const int line =
        index < imported->lines.size() ? imported->lines[index] : 0;
    session->Say(
        absl::StrCat(options.file, ":", line, ": ", refusal.message()));
  }
  if (response.refused() > response.refusals_size()) {
    session->Say(absl::StrCat("and ",
                              response.refused() - response.refusals_size(),
                              " more were refused"));
  }
  const Json json = {{"imported", response.imported()},
                     {"refused", response.refused()},
                     {"read", imported->trials.size()},
                     {"skipped", imported->skipped}};
  Table table;
  table.headers = {"read", "imported", "refused", "skipped"};
  table.rows = {
      {absl::StrCat(imported->trials.size()), absl::StrCat(response.imported()),
       absl::StrCat(response.refused()), absl::StrCat(imported->skipped)}};
  CUBICML_RETURN_IF_ERROR(session->Print(json, table));
  return response.refused() > 0 ? kExitPartial : kExitOk;
}

}  // namespace cubicml
