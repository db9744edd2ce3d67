// SPDX-License-Identifier: Apache-2.0

#include "client/cli/transfer_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/stable_hash.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "client/cli/json_views.h"
#include "client/cli/trial_tables.h"
#include "client/csv.h"
#include "cubicml/client/values.h"

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

// Tells that a trial was imported before, in whatever form the service keeps
// it.
constexpr char kImportLabel[] = "import";

// Of the text below: another one gets another version, so that a label never
// means two things.
constexpr char kFingerprintVersion[] = "1";

// Texts have their length, so that no text can look like the next line.
std::string CanonicalText(absl::string_view text) {
  return absl::StrCat(text.size(), ":", text);
}

std::string CanonicalValue(const v1::Value& value) {
  if (!value.has_list_value()) return CanonicalText(FormatValue(value));
  std::string text = absl::StrCat("[", value.list_value().values_size(), "]");
  for (const v1::Value& element : value.list_value().values()) {
    absl::StrAppend(&text, CanonicalText(FormatValue(element)));
  }
  return text;
}

std::string CanonicalValues(absl::string_view section, const ValueMap& values) {
  std::string text;
  for (const auto& [name, value] : Values(values.begin(), values.end())) {
    absl::StrAppend(&text, section, " ", CanonicalText(name), "=",
                    CanonicalValue(value), "\n");
  }
  return text;
}

// What a trial is and what became of it, the same whichever kind of file says
// it. Labels that services store depend on every byte of it.
std::string CanonicalTrial(const v1::Trial& trial) {
  std::string text =
      absl::StrCat(CanonicalValues("parameter", trial.parameters()),
                   CanonicalValues("context", trial.context()), "state ",
                   v1::Trial::State_Name(trial.state()), "\nreason ",
                   v1::Trial::Reason_Name(trial.reason()), "\n");
  const std::map<std::string, double> metrics(trial.metrics().begin(),
                                              trial.metrics().end());
  for (const auto& [name, number] : metrics) {
    absl::StrAppend(&text, "metric ", CanonicalText(name), "=",
                    FormatNumber(number), "\n");
  }
  return text;
}

// Labels each trial with what it says. Equal rows of one file are different
// measurements: their order tells them apart.
void LabelTrials(std::vector<v1::Trial>* trials) {
  std::map<std::string, int> seen;
  for (v1::Trial& trial : *trials) {
    const std::string content = CanonicalTrial(trial);
    const std::string key = absl::StrCat(content, "row ", ++seen[content]);
    (*trial.mutable_labels())[kImportLabel] = absl::StrCat(
        kFingerprintVersion, "-", absl::Hex(StableHash(key), absl::kZeroPad16));
  }
}

// Drops the trials that were imported before; returns how many there were.
absl::StatusOr<size_t> DropExisting(CommandSession* session,
                                    const v1::Study& study,
                                    ImportedTrials* imported) {
  if (study.progress().trials() == 0) return size_t{0};
  std::set<std::string> known;
  v1::ExportTrialsRequest request;
  request.set_parent(study.name());
  request.set_filter("source = IMPORTED");
  CUBICML_RETURN_IF_ERROR(
      session->client().ExportTrials(request, [&](const v1::Trial& trial) {
        const auto label = trial.labels().find(kImportLabel);
        if (label != trial.labels().end()) known.insert(label->second);
        return absl::OkStatus();
      }));
  ImportedTrials left;
  left.skipped = imported->skipped;
  for (size_t i = 0; i < imported->trials.size(); ++i) {
    if (known.count(imported->trials[i].labels().at(kImportLabel)) > 0) {
      continue;
    }
    left.trials.push_back(std::move(imported->trials[i]));
    left.lines.push_back(imported->lines[i]);
  }
  const size_t dropped = imported->trials.size() - left.trials.size();
  *imported = std::move(left);
  return dropped;
}

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
  absl::StatusOr<ImportedTrials> imported =
      IsJsonLines(options) ? ImportJsonLines(study, text)
                           : ImportCsv(study, text, options.status_column);
  if (!imported.ok()) return WithContext(imported.status(), options.file);
  if (imported->skipped > 0) {
    session->Say(absl::StrCat("skipped ", imported->skipped,
                              " trials that are no measurements"));
  }
  const size_t read = imported->trials.size();
  size_t existing = 0;
  LabelTrials(&imported->trials);
  if (options.existing != "add") {
    CUBICML_ASSIGN_OR_RETURN(existing,
                             DropExisting(session, study, &*imported));
  }
  if (existing > 0 && options.existing == "refuse") {
    return absl::FailedPreconditionError(
        absl::StrCat(options.file, ": ", existing, " of ", read,
                     " trials were imported into ", study.name(),
                     " before; --existing skip imports the others, --existing "
                     "add imports them once more"));
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
                     {"existing", existing},
                     {"read", read},
                     {"skipped", imported->skipped}};
  Table table;
  table.headers = {"read", "imported", "existing", "refused", "skipped"};
  table.rows = {{absl::StrCat(read), absl::StrCat(response.imported()),
                 absl::StrCat(existing), absl::StrCat(response.refused()),
                 absl::StrCat(imported->skipped)}};
  CUBICML_RETURN_IF_ERROR(session->Print(json, table));
  return response.refused() > 0 ? kExitPartial : kExitOk;
}

}  // namespace cubicml
