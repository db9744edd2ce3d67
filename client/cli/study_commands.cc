// SPDX-License-Identifier: Apache-2.0

#include "client/cli/study_commands.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "client/cli/json_views.h"
#include "client/cli/study_file.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

constexpr int kStudiesPage = 500;

absl::StatusOr<StudyFile> ReadStudyFile(const std::string& path) {
  CUBICML_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseStudyFile(text, path == "-" ? "standard input" : path);
}

// "jobs/DLRM_small.yaml" -> "dlrm-small".
std::string IdFromFileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path = path.substr(slash + 1);
  std::string id = absl::AsciiStrToLower(path.substr(0, path.find('.')));
  std::replace_if(
      id.begin(), id.end(),
      [](char c) {
        return !absl::ascii_isalnum(static_cast<unsigned char>(c));
      },
      '-');
  return id;
}

std::string IdOf(const StudyOptions& options, const StudyFile& file) {
  if (!options.id.empty()) return options.id;
  if (file.id.has_value()) return *file.id;
  return IdFromFileName(options.file);
}

std::string OptionalNumber(bool present, double number) {
  return present ? FormatNumber(number) : "";
}

Table StudiesTable(const std::vector<v1::Study>& studies) {
  Table table;
  table.headers = {"study",    "display_name", "trials", "active",
                   "baseline", "best",         "speedup"};
  for (const v1::Study& study : studies) {
    const v1::StudyProgress& progress = study.progress();
    table.rows.push_back({StudyIdOf(study.name()), study.display_name(),
                          absl::StrCat(progress.trials()),
                          absl::StrCat(progress.active_trials()),
                          OptionalNumber(progress.has_baseline_objective(),
                                         progress.baseline_objective()),
                          OptionalNumber(progress.has_best_objective(),
                                         progress.best_objective()),
                          progress.has_speedup()
                              ? absl::StrFormat("%.3f", progress.speedup())
                              : ""});
  }
  return table;
}

absl::Status PrintStudy(CommandSession* session, const v1::Study& study) {
  // A study is no table: for people it is the file that makes it.
  if (session->options().output == OutputFormat::kTable) {
    return session->PrintText(FormatYaml(StudyToJson(study)));
  }
  return session->Print(StudyToJson(study), StudiesTable({study}));
}

// Objectives cannot be changed: a file that has other ones is a mistake.
absl::Status CheckObjectives(const StudyFile& file, const v1::Study& current) {
  if (file.study.objectives_size() == 0) return absl::OkStatus();
  bool same = file.study.objectives_size() == current.objectives_size();
  for (int i = 0; same && i < current.objectives_size(); ++i) {
    same = file.study.objectives(i).SerializeAsString() ==
           current.objectives(i).SerializeAsString();
  }
  if (same) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file.file_name, ":", file.lines.at("objectives"),
                   ": objectives: cannot be changed; create another study"));
}

}  // namespace

absl::StatusOr<int> CreateStudy(CommandSession* session,
                                const StudyOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const StudyFile file, ReadStudyFile(options.file));
  const std::string id = IdOf(options, file);
  CUBICML_ASSIGN_OR_RETURN(const std::string name, ParseStudyName(id));
  v1::CreateStudyRequest request;
  request.set_study_id(StudyIdOf(name));
  *request.mutable_study() = file.study;
  request.set_validate_only(options.validate_only);
  bool is_new = true;
  if (!options.validate_only) {
    const absl::Status known = session->GetStudy(id).status();
    // Once is enough to wait for a server that is away.
    if (ExitCodeOf(known) == kExitServerAway) return known;
    is_new = !known.ok();
  }
  const absl::StatusOr<v1::Study> study =
      session->client().CreateStudy(request);
  if (absl::IsAlreadyExists(study.status())) {
    return absl::AlreadyExistsError(
        absl::StrCat(study.status().message(), "; `cubicml study update ",
                     request.study_id(), " ", options.file,
                     "` changes it, --id ID makes another study of the file"));
  }
  if (!study.ok()) return LocateError(file, study.status());
  if (options.validate_only) {
    session->Say(absl::StrCat(file.file_name, " is a valid study"));
    return kExitOk;
  }
  session->Say(is_new ? absl::StrCat("created ", study->name())
                      : absl::StrCat(study->name(), " exists already, as in ",
                                     file.file_name));
  Table table;
  table.headers = {"study"};
  table.rows = {{StudyIdOf(study->name())}};
  CUBICML_RETURN_IF_ERROR(session->Print(StudyToJson(*study), table));
  return kExitOk;
}

absl::StatusOr<int> GetStudy(CommandSession* session,
                             const StudyOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  CUBICML_RETURN_IF_ERROR(PrintStudy(session, study));
  return kExitOk;
}

absl::StatusOr<int> ListStudies(CommandSession* session,
                                const StudyOptions& options) {
  std::vector<v1::Study> studies;
  v1::ListStudiesRequest request;
  request.set_filter(options.filter);
  request.set_order_by(options.order_by);
  do {
    const int wanted = options.limit > 0
                           ? options.limit - static_cast<int>(studies.size())
                           : kStudiesPage;
    request.set_page_size(std::min(wanted, kStudiesPage));
    CUBICML_ASSIGN_OR_RETURN(v1::ListStudiesResponse page,
                             session->client().ListStudies(request));
    for (v1::Study& study : *page.mutable_studies()) {
      studies.push_back(std::move(study));
    }
    request.set_page_token(page.next_page_token());
  } while (
      !request.page_token().empty() &&
      (options.limit == 0 || static_cast<int>(studies.size()) < options.limit));
  Json json = Json::array();
  for (const v1::Study& study : studies) json.push_back(StudyToJson(study));
  CUBICML_RETURN_IF_ERROR(session->Print(json, StudiesTable(studies)));
  return kExitOk;
}

absl::StatusOr<int> UpdateStudy(CommandSession* session,
                                const StudyOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const StudyFile file, ReadStudyFile(options.file));
  CUBICML_ASSIGN_OR_RETURN(const v1::Study current,
                           session->GetStudy(options.study));
  CUBICML_RETURN_IF_ERROR(CheckObjectives(file, current));
  v1::UpdateStudyRequest request;
  *request.mutable_study() = file.study;
  request.mutable_study()->set_name(current.name());
  // Of two updates at a time one is refused instead of undone.
  request.mutable_study()->set_etag(current.etag());
  for (const std::string& field : file.fields) {
    if (field != "objectives") request.mutable_update_mask()->add_paths(field);
  }
  const absl::StatusOr<v1::Study> study =
      session->client().UpdateStudy(request);
  if (!study.ok()) return LocateError(file, study.status());
  session->Say(absl::StrCat("updated ", study->name()));
  CUBICML_RETURN_IF_ERROR(PrintStudy(session, *study));
  return kExitOk;
}

absl::StatusOr<int> DeleteStudy(CommandSession* session,
                                const StudyOptions& options) {
  v1::DeleteStudyRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(),
                           ParseStudyName(options.study));
  if (!options.force) {
    CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                             session->GetStudy(options.study));
    if (const int64_t trials = study.progress().trials(); trials > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          study.name(), " has ", trials, " trials, ",
          study.progress().active_trials(),
          " of them active, and what they measured is lost with it; "
          "--force deletes them too (`cubicml trials export ",
          StudyIdOf(study.name()), "` keeps a copy)"));
    }
  }
  request.set_force(options.force);
  request.set_etag(options.etag);
  CUBICML_RETURN_IF_ERROR(session->client().DeleteStudy(request));
  session->Say(absl::StrCat("deleted ", request.name()));
  return kExitOk;
}

}  // namespace cubicml
