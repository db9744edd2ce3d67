// SPDX-License-Identifier: Apache-2.0

#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/default_port.h"
#include "base/status_macros.h"
#include "client/cli/exit_codes.h"
#include "client/cli/replay_command.h"
#include "client/cli/run/run_command.h"
#include "client/cli/scalar.h"
#include "client/cli/study_commands.h"
#include "client/cli/transfer_commands.h"
#include "client/cli/trial_commands.h"

namespace cubicml {
namespace {

using Action = std::function<absl::StatusOr<int>(CommandSession*)>;

// Of trials or studies.
constexpr int kMaxCount = 1'000'000'000;

constexpr char kFooter[] = R"(
Start here:
  cubicml study create dlrm.yaml                 a study from a file
  cubicml run --study dlrm -- ./train --tp={tp}  one job, tuned
  cubicml best dlrm                              what came of it

Values go to standard output, messages to standard error. Exit codes: 0 done,
1 the call failed, 2 the command line, a file or the request is wrong, 3 not
found, 4 the server is away, 5 the state does not allow it, 6 no configuration
to hand out, 7 some trials were refused. `run` exits as its job does.)";

constexpr char kRunFooter[] = R"(
The configuration reaches the command in three ways:
  {tp}                 a placeholder; {sharding[3]} is one element of a vector,
                       {flags} is --NAME=VALUE for every active parameter, and
                       {params_file}, {metrics_file}, {trial}, {study} are ours;
                       {{tp}} is the text {tp}
  $CUBICML_PARAM_TP    an environment variable for each active parameter
  $CUBICML_PARAMS_FILE a JSON file

What is measured comes from lines such as `qps=123.4` in the output, or from a
JSON file that the job writes to {metrics_file}, $CUBICML_METRICS_FILE.

While the server is away the job runs on the baseline, and its result is kept
and delivered by the next run. The exit code is the job's.

Example:
  cubicml run --study dlrm --context rows=1000 -- ./train --batch={batch_size})";

// One value for each time, so that what follows may be a positional argument.
void AddRepeatable(CLI::App* command, const std::string& name,
                   std::vector<std::string>* values,
                   const std::string& description) {
  command->add_option(name, *values, description)->allow_extra_args(false);
}

// Owns what the options are parsed into.
class CommandLine {
 public:
  explicit CommandLine(const Environment& environment);

  int Run(std::vector<std::string> arguments);

 private:
  CLI::App* Add(CLI::App* parent, const std::string& name,
                const std::string& description, Action action);
  void AddStudyCommands();
  void AddSuggest();
  void AddTrialEnds();
  void AddQuestions();
  void AddTrialsCommands();
  void AddRun();
  void AddClientId(CLI::App* command, std::string* client_id);
  void AddMode(CLI::App* command, v1::SuggestTrialsRequest::Mode* mode);
  absl::Status FinishOptions();
  int Parse(std::vector<std::string> arguments);

  CLI::App app_{"Tunes the system configuration of training jobs.", "cubicml"};
  Action action_;
  GlobalOptions global_;
  std::string timeout_ = "30s";
  std::string format_ = "table";
  std::string client_id_;  // of the environment

  StudyOptions study_;
  SuggestOptions suggest_;
  HeartbeatOptions heartbeat_;
  CompleteOptions complete_;
  std::string trial_;
  BestOptions best_;
  PredictOptions predict_;
  ListTrialsOptions list_trials_;
  TransferOptions transfer_;
  RunOptions run_;
  std::string run_timeout_;
  std::string run_grace_ = "30s";
  std::string run_server_wait_ = "10s";
  std::string run_aggregate_ = "last";
  std::vector<int> run_out_of_memory_codes_;
};

CommandLine::CommandLine(const Environment& environment) {
  global_.environment = environment;
  global_.server = environment("CUBICML_SERVER").value_or("");
  if (global_.server.empty()) {
    global_.server = absl::StrCat("127.0.0.1:", kDefaultPort);
  }
  client_id_ = environment("CUBICML_CLIENT_ID").value_or("");
  app_.footer(kFooter);
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "cubicml " CUBICML_VERSION);
  app_.add_option("--server", global_.server,
                  "Address of the server, host:port [$CUBICML_SERVER, else "
                  "127.0.0.1:7264]");
  app_.add_option("--timeout", timeout_,
                  "Time for a call, such as 30s or 2m [30s]");
  app_.add_flag("--wait", global_.wait_for_server,
                "While the server cannot be reached, go on trying for all of "
                "--timeout");
  app_.add_option("-o,--output", format_, "table, json, yaml or csv [table]")
      ->check(CLI::IsMember({"table", "json", "yaml", "csv"}));
  AddStudyCommands();
  AddSuggest();
  AddTrialEnds();
  AddQuestions();
  AddTrialsCommands();
  AddRun();
  Add(&app_, "replay",
      "Tune a table of measured configurations instead of jobs",
      [](CommandSession*) -> absl::StatusOr<int> {
        return absl::InvalidArgumentError(
            "replay must be the first word of the command line");
      });
}

CLI::App* CommandLine::Add(CLI::App* parent, const std::string& name,
                           const std::string& description, Action action) {
  CLI::App* command = parent->add_subcommand(name, description);
  // Global options may stand after the command, too.
  command->fallthrough();
  if (action) {
    command->callback([this, action] { action_ = action; });
  } else {
    command->require_subcommand(1);
  }
  return command;
}

void CommandLine::AddStudyCommands() {
  CLI::App* study = Add(&app_, "study", "Create and look at studies", nullptr);
  CLI::App* create =
      Add(study, "create", "Create a study from a file",
          [this](CommandSession* s) { return CreateStudy(s, study_); });
  create
      ->add_option("file", study_.file,
                   "The study file (docs/study-files.md), - for standard "
                   "input")
      ->required();
  create->add_option("--id", study_.id,
                     "Its id [the file's `id`, else the name of the file]");
  create->add_flag("--validate-only", study_.validate_only,
                   "Let the server check the study and store nothing");
  CLI::App* get =
      Add(study, "get", "Show a study, as the file that makes it",
          [this](CommandSession* s) { return GetStudy(s, study_); });
  get->add_option("study", study_.study, "Its id")->required();
  CLI::App* list =
      Add(study, "list", "List studies and how far they are",
          [this](CommandSession* s) { return ListStudies(s, study_); });
  list->add_option("--filter", study_.filter, "Such as: labels.team = \"ads\"");
  list->add_option("--order-by", study_.order_by, "Such as: create_time desc");
  list->add_option("--limit", study_.limit, "At most this many [all]")
      ->check(CLI::Range(0, kMaxCount, "NONNEGATIVE"));
  CLI::App* update =
      Add(study, "update", "Change what a file names; spaces may only grow",
          [this](CommandSession* s) { return UpdateStudy(s, study_); });
  update->add_option("study", study_.study, "Its id")->required();
  update
      ->add_option("file", study_.file, "A study file; it may be a part of one")
      ->required();
  CLI::App* remove =
      Add(study, "delete", "Delete a study and its trials",
          [this](CommandSession* s) { return DeleteStudy(s, study_); });
  remove->add_option("study", study_.study, "Its id")->required();
  remove->add_flag("--force", study_.force,
                   "Delete the trials too, also those that are still active");
  remove->add_option("--etag", study_.etag, "Only if it is still this version");
}

void CommandLine::AddClientId(CLI::App* command, std::string* client_id) {
  *client_id = client_id_;
  command->add_option("--client-id", *client_id,
                      "Who holds the trial [$CUBICML_CLIENT_ID, else nobody]");
}

void CommandLine::AddMode(CLI::App* command,
                          v1::SuggestTrialsRequest::Mode* mode) {
  static const auto* const modes =
      new std::map<std::string, v1::SuggestTrialsRequest::Mode>{
          {"explore", v1::SuggestTrialsRequest::EXPLORE},
          {"exploit", v1::SuggestTrialsRequest::EXPLOIT},
          {"baseline", v1::SuggestTrialsRequest::REMEASURE_BASELINE}};
  command
      ->add_option_function<std::string>(
          "--mode",
          [mode](const std::string& word) { *mode = modes->at(word); },
          "explore; exploit: the best one known, measured again; baseline: "
          "the baseline, measured again [explore]")
      ->check(CLI::IsMember({"explore", "exploit", "baseline"}));
}

void CommandLine::AddSuggest() {
  CLI::App* suggest =
      Add(&app_, "suggest", "Ask for configurations to run",
          [this](CommandSession* s) { return Suggest(s, suggest_); });
  suggest->add_option("study", suggest_.study, "Id of the study")->required();
  suggest->add_option("--count", suggest_.count, "How many [1]")
      ->check(CLI::Range(1, 100));
  AddRepeatable(suggest, "--context", &suggest_.context,
                "What the job is, NAME=VALUE; repeat it");
  AddRepeatable(suggest, "--fix", &suggest_.fixed_parameters,
                "A parameter that is decided already, NAME=VALUE");
  AddRepeatable(suggest, "--label", &suggest_.labels,
                "Copied into the trials, NAME=VALUE");
  AddMode(suggest, &suggest_.mode);
  AddClientId(suggest, &suggest_.client_id);
}

void CommandLine::AddTrialEnds() {
  CLI::App* heartbeat =
      Add(&app_, "heartbeat", "Keep a trial's lease",
          [this](CommandSession* s) { return Heartbeat(s, heartbeat_); });
  heartbeat->add_option("trial", heartbeat_.trial, "STUDY/NUMBER")->required();
  heartbeat->add_option("--step", heartbeat_.step, "How far the job is");
  AddRepeatable(heartbeat, "--metric", &heartbeat_.metrics,
                "An intermediate value, NAME=NUMBER");
  AddClientId(heartbeat, &heartbeat_.client_id);
  CLI::App* complete =
      Add(&app_, "complete", "End a trial with its outcome",
          [this](CommandSession* s) { return Complete(s, complete_); });
  complete->add_option("trial", complete_.trial, "STUDY/NUMBER")->required();
  AddRepeatable(complete, "--metric", &complete_.metrics,
                "What was measured, NAME=NUMBER; repeat it");
  complete->add_option("--state", complete_.state,
                       "succeeded, infeasible or abandoned [succeeded]");
  complete->add_option("--reason", complete_.reason,
                       "Such as out_of_memory, crash, timeout, preempted");
  complete->add_option("--detail", complete_.detail, "For people");
  AddClientId(complete, &complete_.client_id);
  CLI::App* cancel =
      Add(&app_, "cancel", "Withdraw a trial that has not ended",
          [this](CommandSession* s) { return Cancel(s, trial_); });
  cancel->add_option("trial", trial_, "STUDY/NUMBER")->required();
}

void CommandLine::AddQuestions() {
  CLI::App* best = Add(&app_, "best", "The best trials, or the Pareto front",
                       [this](CommandSession* s) { return Best(s, best_); });
  best->add_option("study", best_.study, "Id of the study")->required();
  AddRepeatable(best, "--context", &best_.context,
                "Only trials of this context, NAME=VALUE");
  CLI::Option* limit =
      best->add_option("--limit", best_.limit, "At most this many [10]")
          ->check(CLI::Range(1, 1000));
  best->add_flag("--compare-baseline", best_.compare_baseline,
                 "Only the knobs in which the best one differs from the "
                 "baseline, one a line")
      ->excludes(limit);
  CLI::App* predict =
      Add(&app_, "predict", "What a configuration would do, by the model",
          [this](CommandSession* s) { return Predict(s, predict_); });
  predict->add_option("study", predict_.study, "Id of the study")->required();
  AddRepeatable(predict, "--param", &predict_.parameters,
                "A parameter, NAME=VALUE; repeat it");
  AddRepeatable(predict, "--context", &predict_.context,
                "What the job is, NAME=VALUE; repeat it");
}

void CommandLine::AddTrialsCommands() {
  CLI::App* trials =
      Add(&app_, "trials", "Look at, export and import trials", nullptr);
  CLI::App* list =
      Add(trials, "list", "List trials",
          [this](CommandSession* s) { return ListTrials(s, list_trials_); });
  list->add_option("study", list_trials_.study, "Id of the study")->required();
  list->add_option("--filter", list_trials_.filter,
                   "Such as: state = SUCCEEDED AND objective > 1000");
  list->add_option("--order-by", list_trials_.order_by,
                   "number, objective, create_time or end_time, and desc");
  list->add_option("--limit", list_trials_.limit, "At most this many [all]")
      ->check(CLI::Range(0, kMaxCount, "NONNEGATIVE"));
  CLI::App* get =
      Add(trials, "get", "Show one trial",
          [this](CommandSession* s) { return GetTrial(s, trial_); });
  get->add_option("trial", trial_, "STUDY/NUMBER")->required();
  CLI::App* export_trials =
      Add(trials, "export", "Write all trials as CSV or JSON lines",
          [this](CommandSession* s) { return ExportTrials(s, transfer_); });
  CLI::App* import_trials =
      Add(trials, "import", "Add measurements of jobs that were not tuned",
          [this](CommandSession* s) { return ImportTrials(s, transfer_); });
  for (CLI::App* command : {export_trials, import_trials}) {
    command->add_option("study", transfer_.study, "Id of the study")
        ->required();
    command
        ->add_option("--format", transfer_.format,
                     "csv or jsonl [by the file's name, else csv]")
        ->check(CLI::IsMember({"csv", "jsonl"}));
  }
  export_trials->add_option("--file", transfer_.file,
                            "Where to [standard output]");
  export_trials->add_option("--filter", transfer_.filter,
                            "As of `trials list`");
  import_trials
      ->add_option("file", transfer_.file, "The file, - for standard input")
      ->required();
  import_trials->add_option("--status-column", transfer_.status_column,
                            "Column that says how a job ended [status]");
  import_trials
      ->add_option("--existing", transfer_.existing,
                   "For trials that were imported before: refuse the file, "
                   "skip them, or add them once more [refuse]")
      ->check(CLI::IsMember({"refuse", "skip", "add"}));
  import_trials->add_flag("--dry-run", transfer_.dry_run,
                          "Only read the file and tell its errors");
}

void CommandLine::AddRun() {
  CLI::App* run = Add(&app_, "run", "Run a job with a configuration to try",
                      [this](CommandSession* session) -> absl::StatusOr<int> {
                        return cubicml::Run(session->options(), run_);
                      });
  run->footer(kRunFooter);
  run->add_option("--study", run_.study, "Id of the study")->required();
  run->add_option("--context", run_.context,
                  "What the job is, NAME=VALUE; repeat it");
  run->add_option("--fix", run_.fixed_parameters,
                  "A parameter that is decided already, NAME=VALUE");
  run->add_option("--baseline", run_.baseline,
                  "A parameter's value for when the server is away, "
                  "NAME=VALUE [what the server said last]");
  run->add_option("--label", run_.labels, "Copied into the trial, NAME=VALUE");
  run->add_option("--trials", run_.trials,
                  "Run this many jobs, one after the other; 0: until every "
                  "configuration has been tried [1]")
      ->check(CLI::Range(0, kMaxCount, "NONNEGATIVE"));
  AddMode(run, &run_.mode);
  run->add_option("--metric-regex", run_.metric_expressions,
                  "Finds a metric in the output: one group around the number, "
                  "or named ones, (?P<qps>[0-9.]+) [NAME=NUMBER]");
  run->add_option("--metrics-file", run_.metrics_file,
                  "JSON that the job writes; removed before it starts");
  run->add_option("--aggregate", run_aggregate_,
                  "last, mean, max or min of a metric's values [last]")
      ->check(CLI::IsMember({"last", "mean", "max", "min"}));
  run->add_option("--timeout", run_timeout_,
                  "Stop the job after this long [never]");
  run->add_option("--grace", run_grace_, "Between SIGTERM and SIGKILL [30s]");
  run->add_option("--oom-exit-code", run_out_of_memory_codes_,
                  "An exit code that means that memory ran out");
  run->add_option("--server-wait", run_server_wait_,
                  "How long a job may wait for a server that is away [10s]");
  run->add_flag("--quiet", run_.quiet,
                "No line for each trial, and no note about parameters");
  run_.client_id = client_id_;
  run->add_option("--client-id", run_.client_id,
                  "Identifies this job; keep it the same across restarts "
                  "[$CUBICML_CLIENT_ID, else a new one]");
}

absl::Status CommandLine::FinishOptions() {
  CUBICML_ASSIGN_OR_RETURN(global_.timeout, ParsePositiveDuration(timeout_));
  static const std::vector<std::string>& formats =
      *new std::vector<std::string>{"table", "json", "yaml", "csv"};
  global_.output = static_cast<OutputFormat>(
      std::find(formats.begin(), formats.end(), format_) - formats.begin());
  CUBICML_ASSIGN_OR_RETURN(run_.aggregate, ParseAggregate(run_aggregate_));
  if (!run_timeout_.empty()) {
    CUBICML_ASSIGN_OR_RETURN(run_.timeout, ParsePositiveDuration(run_timeout_));
  }
  CUBICML_ASSIGN_OR_RETURN(run_.grace, ParsePositiveDuration(run_grace_));
  CUBICML_ASSIGN_OR_RETURN(run_.server_wait,
                           ParsePositiveDuration(run_server_wait_));
  run_.out_of_memory_exit_codes.insert(run_out_of_memory_codes_.begin(),
                                       run_out_of_memory_codes_.end());
  return absl::OkStatus();
}

int CommandLine::Parse(std::vector<std::string> arguments) {
  // What follows -- belongs to the job, whatever it looks like.
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator != arguments.end()) {
    run_.command.assign(separator + 1, arguments.end());
    arguments.erase(separator, arguments.end());
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app_.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int code = app_.exit(error, out, err);
    std::cout << out.str() << std::flush;
    if (code == 0) return kExitOk;
    std::cerr << "cubicml: " << err.str() << std::flush;
    return kExitUsage;
  }
  if (app_.got_subcommand("run") && run_.command.empty()) {
    std::cerr << "cubicml: run needs -- and the command of the job\n";
    return kExitUsage;
  }
  if (!app_.got_subcommand("run") && !run_.command.empty()) {
    std::cerr << "cubicml: only run takes a command after --\n";
    return kExitUsage;
  }
  return -1;
}

int CommandLine::Run(std::vector<std::string> arguments) {
  const int parsed = Parse(std::move(arguments));
  if (parsed >= 0) return parsed;
  absl::StatusOr<int> code = [&]() -> absl::StatusOr<int> {
    CUBICML_RETURN_IF_ERROR(FinishOptions());
    CUBICML_ASSIGN_OR_RETURN(CommandSession session,
                             CommandSession::Create(global_));
    return action_(&session);
  }();
  if (code.ok()) return *code;
  std::cerr << "cubicml: " << code.status().message() << "\n";
  return ExitCodeOf(code.status());
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments,
                   const Environment& environment) {
  if (!arguments.empty() && arguments[0] == "replay") {
    const absl::Status status =
        ExecReplay({arguments.begin() + 1, arguments.end()});
    std::cerr << "cubicml: " << status.message() << "\n";
    return kExitNoSuchProgram;
  }
  try {
    return CommandLine(environment).Run(arguments);
  } catch (const std::exception& error) {
    // Of CLI11's or the standard library's; ours do not throw.
    std::cerr << "cubicml: " << error.what() << "\n";
    return kExitFailed;
  }
}

}  // namespace cubicml
