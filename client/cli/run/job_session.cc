// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/job_session.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/cli/baseline_trial.h"
#include "client/cli/exit_codes.h"
#include "client/cli/run/job_files.h"
#include "client/cli/run/job_launch.h"
#include "client/cli/typed_values.h"
#include "client/request_id.h"
#include "cubicml/client/errors.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

// Between two trials of many there is nothing to lose by waiting.
constexpr absl::Duration kPatientWait = absl::Minutes(2);
// Spooled results must not keep a job from starting.
constexpr absl::Duration kSpoolTimeout = absl::Seconds(5);
constexpr size_t kMaxNamesInMessage = 8;

// Mistakes of the command line, which end it before a job runs. Everything
// else is the service's trouble, and the job runs.
bool IsMistake(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status);
}

absl::StatusOr<Values> UntypedValues(
    const std::vector<std::string>& assignments) {
  Values values;
  for (const std::string& assignment : assignments) {
    CUBICML_ASSIGN_OR_RETURN(auto split, SplitAssignment(assignment));
    values[split.first] = MakeValue(split.second);
  }
  return values;
}

std::string DescribeDifference(const v1::Study& study, double value,
                               std::optional<double> baseline) {
  if (!baseline.has_value() || *baseline == 0) return "";
  const double percent = 100 * (value / *baseline - 1);
  const bool maximize = study.objectives(0).goal() == v1::MAXIMIZE;
  // Beyond that nobody reads digits.
  if (std::abs(percent) > 1e6) {
    return absl::StrFormat(" (%.3g times the baseline)", value / *baseline);
  }
  return absl::StrFormat(" (%+.1f %% %s baseline)", percent,
                         maximize ? "over" : "against");
}

}  // namespace

JobSession::JobSession(CommandSession session, const RunOptions* options,
                       CommandTemplate command, std::string cache_folder)
    : session_(std::move(session)),
      options_(*options),
      command_(std::move(command)),
      cache_(cache_folder + "/studies", session_.options().server),
      spool_(cache_folder + "/results", session_.options().server) {}

absl::StatusOr<int> JobSession::Run() {
  CUBICML_ASSIGN_OR_RETURN(study_name_, ParseStudyName(options_.study));
  first_deadline_ = clock_.Elapsed() + options_.server_wait;
  v1::GetStudyRequest request;
  request.set_name(study_name_);
  const absl::StatusOr<v1::Study> study =
      session_.client().GetStudy(request, {.timeout = options_.server_wait});
  if (!study.ok()) {
    // Many trials are for tuning: there is no training run that would be lost.
    if (IsMistake(study.status()) || ManyTrials()) return study.status();
    return RunBaseline(study.status());
  }
  study_ = *study;
  const absl::Status saved = cache_.SaveStudy(study_);
  if (!saved.ok()) {
    session_.Say(
        absl::StrCat("the study is not remembered for times without "
                     "the server: ",
                     saved.message()));
  }
  CUBICML_RETURN_IF_ERROR(Prepare());
  SayLeftOut();
  const absl::StatusOr<int> code = RunTrials();
  const std::string failures = tally_.DescribeFailures(study_, ManyTrials());
  if (!failures.empty()) session_.Say(failures);
  return code;
}

void JobSession::SayLeftOut() const {
  if (options_.quiet) return;
  std::vector<absl::string_view> names;
  for (const v1::Parameter& parameter : study_.parameters()) {
    names.push_back(parameter.name());
  }
  std::vector<std::string> left_out = command_.FindLeftOut(names);
  const bool all = left_out.size() == names.size();
  // What is decided is not tuned.
  std::erase_if(left_out, [this](const std::string& name) {
    return fixed_parameters_.count(name) > 0;
  });
  if (left_out.empty()) return;
  const std::string example = ParameterVariable(left_out[0]);
  const size_t more =
      left_out.size() - std::min(left_out.size(), kMaxNamesInMessage);
  left_out.resize(left_out.size() - more);
  const std::string what =
      all ? "names no parameter: the job finds the configuration"
          : absl::StrCat("does not name ", absl::StrJoin(left_out, ", "),
                         more > 0 ? absl::StrCat(" and ", more, " more") : "",
                         ": the job finds them");
  session_.Say(absl::StrCat("note: the command ", what,
                            " only in its environment, such as $", example));
}

// What can be checked before the service is asked for a trial.
absl::Status JobSession::Prepare() {
  std::vector<absl::string_view> names;
  for (const v1::Parameter& parameter : study_.parameters()) {
    names.push_back(parameter.name());
  }
  CUBICML_RETURN_IF_ERROR(command_.Check(names));
  CUBICML_ASSIGN_OR_RETURN(context_, ParseContext(study_, options_.context));
  CUBICML_ASSIGN_OR_RETURN(fixed_parameters_,
                           ParseParameters(study_, options_.fixed_parameters));
  CUBICML_RETURN_IF_ERROR(ParseParameters(study_, options_.baseline).status());
  CUBICML_ASSIGN_OR_RETURN(
      patterns_,
      OutputPatterns::Create(MetricNames(study_), options_.metric_expressions));
  // The command must expand whatever is suggested: try it with the baseline.
  CUBICML_ASSIGN_OR_RETURN(TemplateValues values, BaselineValues());
  values.words = {
      {"trial", ""}, {"study", ""}, {"params_file", ""}, {"metrics_file", ""}};
  return command_.Expand(values).status();
}

absl::StatusOr<TrialHandle> JobSession::StartTrial(
    v1::SuggestTrialsRequest::Mode mode, absl::Duration deadline) {
  StartTrialOptions start;
  start.study = study_name_;
  start.context = context_;
  start.fixed_parameters = fixed_parameters_;
  start.client_id = options_.client_id;
  start.mode = mode;
  start.timeout = std::max(deadline - clock_.Elapsed(), absl::Milliseconds(1));
  for (const std::string& label : options_.labels) {
    CUBICML_ASSIGN_OR_RETURN(auto split, SplitAssignment(label));
    start.labels[split.first] = split.second;
  }
  return session_.client().StartTrial(start);
}

absl::StatusOr<TrialHandle> JobSession::NextTrial(absl::Duration deadline) {
  // Twice: the server may come back only now, and still wait for the result of
  // this client's last trial, which need not run twice.
  for (int round = 0; round < 2; ++round) {
    DeliverSpooled(deadline);
    absl::StatusOr<TrialHandle> trial = StartTrial(options_.mode, deadline);
    if (!trial.ok() || !spool_.Holds(trial->name())) return trial;
    trial->Release();
  }
  return absl::UnavailableError(
      absl::StrCat("the result of this client's last trial is still kept in ",
                   spool_.folder(), ", and it is not run again"));
}

absl::StatusOr<int> JobSession::RunTrials() {
  for (int i = 0; options_.trials == 0 || i < options_.trials; ++i) {
    absl::StatusOr<TrialHandle> trial =
        NextTrial(i == 0 ? first_deadline_ : clock_.Elapsed() + kPatientWait);
    if (!trial.ok()) {
      if (IsMistake(trial.status())) return trial.status();
      if (i == 0 && !ManyTrials()) return RunWithoutTrial(trial.status());
      if (i == 0 && !absl::IsOutOfRange(trial.status())) return trial.status();
      session_.Say(
          absl::StrCat("no further trial: ", trial.status().message()));
      return ExitCode();
    }
    CUBICML_ASSIGN_OR_RETURN(last_exit_code_, RunOneTrial(*std::move(trial)));
    if (interrupted_by_ != 0) {
      if (!ManyTrials() || last_exit_code_ != 0) return last_exit_code_;
      return 128 + interrupted_by_;
    }
  }
  return ExitCode();
}

int JobSession::ExitCode() const {
  // Of many trials some do not work: that is what they are for.
  if (ManyTrials() && tally_.succeeded() > 0) return kExitOk;
  return last_exit_code_;
}

absl::StatusOr<int> JobSession::RunOneTrial(TrialHandle trial) {
  const v1::Trial& handed_out = trial.trial();
  if (handed_out.suggestion().source() == v1::Trial::BASELINE) {
    // A convenience for later; the job does not depend on it.
    cache_.SaveBaseline(handed_out).IgnoreError();
  }
  const absl::StatusOr<FinishedJob> job =
      RunJobWith(TrialValues(handed_out), &trial);
  if (!job.ok()) {
    // No job, no measurement: that says nothing about the configuration.
    trial.Abandon(v1::Trial::OTHER, job.status().message())
        .status()
        .IgnoreError();
    trial.Release();
    return job.status();
  }
  interrupted_by_ = job->evidence.end.interrupted_by;
  Report(&trial, job->outcome);
  signals_.SetHolding(false);
  // What came during the report found no job to send it on to.
  for (const int signal : signals_.Take()) {
    if (interrupted_by_ == 0 && SignalRelay::IsStop(signal)) {
      interrupted_by_ = signal;
    }
  }
  return job->evidence.end.ExitCode();
}

absl::StatusOr<int> JobSession::RunWithoutTrial(const absl::Status& why) {
  if (absl::IsOutOfRange(why) &&
      options_.mode == v1::SuggestTrialsRequest::EXPLORE) {
    session_.Say(
        absl::StrCat(why.message(), "; running the best configuration known"));
    absl::StatusOr<TrialHandle> best =
        StartTrial(v1::SuggestTrialsRequest::EXPLOIT, first_deadline_);
    if (best.ok()) return RunOneTrial(*std::move(best));
  }
  return RunBaseline(why);
}

absl::StatusOr<int> JobSession::RunBaseline(const absl::Status& why) {
  if (study_.name().empty()) {
    if (const auto known = cache_.LoadStudy(study_name_)) study_ = *known;
    CUBICML_ASSIGN_OR_RETURN(
        patterns_, OutputPatterns::Create(MetricNames(study_),
                                          options_.metric_expressions));
  }
  CUBICML_ASSIGN_OR_RETURN(TemplateValues values, BaselineValues());
  std::vector<std::string> missing;
  for (const std::string& name : command_.parameters()) {
    if (values.parameters.count(name) == 0) missing.push_back(name);
  }
  if (!missing.empty()) {
    return absl::Status(
        why.code() == absl::StatusCode::kOk ? absl::StatusCode::kUnavailable
                                            : why.code(),
        absl::StrCat(why.message(),
                     "; and nothing is known of the baseline: "
                     "pass --baseline ",
                     absl::StrJoin(missing, "=VALUE --baseline "),
                     "=VALUE, so that the job can run without the service"));
  }
  session_.Say(absl::StrCat("WARNING: ", why.message(),
                            "; the job runs on the baseline, untuned"));
  if (values.parameters.empty()) {
    session_.Say(
        "WARNING: the baseline is not known either: the job runs with "
        "its own defaults");
  }
  CUBICML_ASSIGN_OR_RETURN(const FinishedJob job,
                           RunJobWith(std::move(values), nullptr));
  return job.evidence.end.ExitCode();
}

// In the order of who knows better: the command line, the baseline that the
// service handed out, the defaults of the study.
absl::StatusOr<TemplateValues> JobSession::BaselineValues() {
  TemplateValues values;
  if (study_.name().empty()) {
    CUBICML_ASSIGN_OR_RETURN(values.active, UntypedValues(options_.baseline));
    CUBICML_ASSIGN_OR_RETURN(const Values fixed,
                             UntypedValues(options_.fixed_parameters));
    values.active.insert(fixed.begin(), fixed.end());
    values.parameters = values.active;
    return values;
  }
  CUBICML_ASSIGN_OR_RETURN(const Values context,
                           ParseContext(study_, options_.context));
  const std::optional<Values> handed_out =
      cache_.LoadBaseline(study_name_, context);
  for (const v1::Parameter& parameter : study_.parameters()) {
    values.parameters[parameter.name()] = DefaultOf(parameter);
    if (!handed_out.has_value() && parameter.active_if().empty()) {
      values.active[parameter.name()] = DefaultOf(parameter);
    }
  }
  if (handed_out.has_value()) values.active = *handed_out;
  for (const auto& assignments :
       {options_.fixed_parameters, options_.baseline}) {
    CUBICML_ASSIGN_OR_RETURN(const Values given,
                             ParseParameters(study_, assignments));
    for (const auto& [name, value] : given) values.active[name] = value;
  }
  for (const auto& [name, value] : values.active) {
    values.parameters[name] = value;
  }
  return values;
}

TemplateValues JobSession::TrialValues(const v1::Trial& trial) const {
  TemplateValues values;
  values.active = Values(trial.parameters().begin(), trial.parameters().end());
  values.parameters = values.active;
  for (const v1::Parameter& parameter : study_.parameters()) {
    // A knob that is not active does not matter; its place in the command
    // still wants something that the job accepts.
    values.parameters.emplace(parameter.name(), DefaultOf(parameter));
  }
  values.words["trial"] = trial.name();
  return values;
}

std::optional<double> JobSession::FindBaselineObjective(const v1::Trial& job) {
  if (baseline_objective_.has_value()) return baseline_objective_;
  const absl::StatusOr<std::optional<v1::Trial>> trial =
      FindBaselineTrial(&session_.client(), study_name_, job.context(),
                        "state = SUCCEEDED", {.timeout = absl::Seconds(2)});
  // It is only for a line of text.
  if (!trial.ok() || !trial->has_value()) return std::nullopt;
  const auto measured =
      (*trial)->metrics().find(study_.objectives(0).metric().name());
  if (measured == (*trial)->metrics().end()) return std::nullopt;
  baseline_objective_ = measured->second;
  return baseline_objective_;
}

void JobSession::SayOutcome(const v1::Trial& trial, const Outcome& outcome) {
  if (options_.quiet) return;
  std::string text = absl::StrCat("trial ", TrialNumberOf(trial.name()), ": ");
  if (outcome.state != v1::Trial::SUCCEEDED) {
    absl::StrAppend(&text, v1::Trial::Reason_Name(outcome.reason));
    if (outcome.state == v1::Trial::ABANDONED) {
      absl::StrAppend(&text, ", abandoned");
    }
    if (!outcome.detail.empty()) {
      absl::StrAppend(&text, " (", outcome.detail, ")");
    }
  } else {
    const std::string& metric = study_.objectives(0).metric().name();
    const double value = outcome.metrics.at(metric);
    absl::StrAppend(&text, metric, " ", absl::StrFormat("%.6g", value));
    if (trial.suggestion().source() == v1::Trial::BASELINE) {
      baseline_objective_ = value;
      absl::StrAppend(&text, " (baseline)");
    } else {
      absl::StrAppend(&text, DescribeDifference(study_, value,
                                                FindBaselineObjective(trial)));
    }
  }
  session_.SayLine(text);
}

void JobSession::Report(TrialHandle* trial, const Outcome& outcome) {
  v1::CompleteTrialRequest request;
  request.set_name(trial->trial().name());
  request.set_client_id(trial->trial().client_id());
  request.set_state(outcome.state);
  request.mutable_metrics()->insert(outcome.metrics.begin(),
                                    outcome.metrics.end());
  request.set_reason(outcome.reason);
  request.set_reason_detail(outcome.detail.substr(0, 1000));
  request.set_request_id(NewRequestId());
  const absl::StatusOr<v1::Trial> completed = session_.client().CompleteTrial(
      request, {.timeout = options_.server_wait});
  trial->Release();
  if (completed.ok()) {
    Outcome stored = outcome;
    stored.state = completed->state();
    if (completed->state() != v1::Trial::SUCCEEDED) {
      stored.reason = completed->reason();
      stored.detail = completed->reason_detail();
    }
    tally_.Add(study_, trial->trial(), stored);
    SayOutcome(trial->trial(), stored);
    return;
  }
  if (IsMistake(completed.status()) ||
      absl::IsFailedPrecondition(completed.status())) {
    session_.Say(absl::StrCat("the service does not take the result: ",
                              completed.status().message()));
    return;
  }
  // Nobody has judged it yet but us.
  tally_.Add(study_, trial->trial(), outcome);
  const absl::Status kept = spool_.Add(request);
  session_.Say(absl::StrCat(
      "WARNING: ", completed.status().message(),
      kept.ok() ? absl::StrCat("; the result is kept in ", spool_.folder(),
                               " and delivered by the next `cubicml run`")
                : absl::StrCat("; the result is lost: ", kept.message())));
}

void JobSession::DeliverSpooled(absl::Duration deadline) {
  deadline = std::min(deadline, clock_.Elapsed() + kSpoolTimeout);
  const ResultSpool::Report report =
      spool_.Deliver([&](const v1::CompleteTrialRequest& request) {
        const absl::Duration left = deadline - clock_.Elapsed();
        if (left <= absl::ZeroDuration()) {
          return absl::DeadlineExceededError("no time left");
        }
        return session_.client()
            .CompleteTrial(request, {.timeout = left})
            .status();
      });
  if (report.delivered > 0) {
    session_.Say(absl::StrCat("delivered ", report.delivered,
                              " results of earlier jobs"));
  }
  if (report.refused > 0) {
    session_.Say(
        absl::StrCat("the service does not take ", report.refused,
                     " results of earlier jobs, kept in ", spool_.folder(),
                     " as *.refused: ", report.last_refusal.message()));
  }
}

absl::StatusOr<JobSession::FinishedJob> JobSession::RunJobWith(
    TemplateValues values, const TrialHandle* trial) {
  JobLaunch launch;
  launch.options = &options_;
  launch.command = &command_;
  launch.patterns = &patterns_;
  launch.server = session_.options().server;
  launch.study_id = StudyIdOf(study_name_);
  launch.environment = session_.options().environment;
  if (trial != nullptr) {
    launch.should_stop = [trial] { return trial->should_stop(); };
  }
  // A signal that came while no job ran, and none to stop, is not for this one.
  signals_.Take();
  signals_.SetHolding(true);
  FinishedJob job;
  absl::StatusOr<JobEvidence> evidence =
      LaunchJob(launch, std::move(values), &signals_, &clock_);
  failed_to_start_ = absl::IsNotFound(evidence.status()) ||
                     absl::IsPermissionDenied(evidence.status());
  if (!evidence.ok()) return evidence.status();
  job.evidence = *std::move(evidence);
  if (!job.evidence.metrics_file_error.empty()) {
    session_.Say(job.evidence.metrics_file_error);
  }
  job.outcome = JudgeJob(study_, job.evidence, options_.aggregate);
  return job;
}

}  // namespace cubicml
