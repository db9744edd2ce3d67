// SPDX-License-Identifier: Apache-2.0

#include "client/cli/trial_commands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "client/cli/baseline_trial.h"
#include "client/cli/exit_codes.h"
#include "client/cli/json_views.h"
#include "client/cli/trial_tables.h"
#include "client/cli/typed_values.h"
#include "cubicml/client/resource_names.h"

namespace cubicml {
namespace {

constexpr int kTrialsPage = 500;

Json TrialsToJson(std::span<const v1::Trial> trials) {
  Json json = Json::array();
  for (const v1::Trial& trial : trials) json.push_back(TrialToJson(trial));
  return json;
}

absl::Status PrintTrial(CommandSession* session, const v1::Trial& trial) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(StudyIdOf(trial.name())));
  return session->Print(TrialToJson(trial), TrialsTable(study, {&trial, 1}));
}

// A word of an enum, in any case.
template <typename Enum>
absl::StatusOr<Enum> ParseEnum(absl::string_view word, absl::string_view what,
                               bool (*parse)(const std::string&, Enum*)) {
  Enum value{};
  if (!parse(absl::AsciiStrToUpper(word), &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", word, "' is not a ", what));
  }
  return value;
}

bool ParseState(const std::string& word, v1::Trial::State* state) {
  return v1::Trial::State_Parse(word, state);
}

bool ParseReason(const std::string& word, v1::Trial::Reason* reason) {
  return v1::Trial::Reason_Parse(word, reason);
}

absl::StatusOr<v1::SuggestTrialsRequest> MakeSuggestRequest(
    const v1::Study& study, const SuggestOptions& options) {
  v1::SuggestTrialsRequest request;
  request.set_parent(study.name());
  request.set_count(options.count);
  request.set_client_id(options.client_id);
  CUBICML_ASSIGN_OR_RETURN(const Values context,
                           ParseContext(study, options.context));
  request.mutable_context()->insert(context.begin(), context.end());
  CUBICML_ASSIGN_OR_RETURN(const Values fixed,
                           ParseParameters(study, options.fixed_parameters));
  request.mutable_fixed_parameters()->insert(fixed.begin(), fixed.end());
  request.set_mode(options.mode);
  for (const std::string& label : options.labels) {
    CUBICML_ASSIGN_OR_RETURN(auto split, SplitAssignment(label));
    (*request.mutable_labels())[split.first] = std::move(split.second);
  }
  return request;
}

// Trials from before the study gained a knob ran without it: with its default.
// A conditional one may not have been active.
ValueMap WithDefaults(const v1::Study& study, ValueMap values) {
  for (const v1::Parameter& parameter : study.parameters()) {
    if (parameter.active_if().empty() &&
        values.find(parameter.name()) == values.end()) {
      values[parameter.name()] = DefaultOf(parameter);
    }
  }
  return values;
}

// What the baseline is where the trial ran: as it was handed out there, else
// the defaults.
absl::StatusOr<ValueMap> BaselineOf(CommandSession* session,
                                    const v1::Study& study,
                                    const v1::Trial& trial) {
  CUBICML_ASSIGN_OR_RETURN(
      const std::optional<v1::Trial> baseline,
      FindBaselineTrial(&session->client(), study.name(), trial.context(), ""));
  return WithDefaults(
      study, baseline.has_value() ? baseline->parameters() : ValueMap());
}

std::string KnobCell(const std::optional<v1::Value>& value) {
  return value.has_value() ? FormatValue(*value) : "not active";
}

absl::StatusOr<int> PrintComparison(
    CommandSession* session, const Json& trial,
    const std::vector<KnobDifference>& differences) {
  Table table;
  table.headers = {"knob", "baseline", "best"};
  Json knobs = Json::array();
  for (const KnobDifference& difference : differences) {
    table.rows.push_back({difference.knob, KnobCell(difference.baseline),
                          KnobCell(difference.best)});
    Json knob = {
        {"knob", difference.knob}, {"baseline", nullptr}, {"best", nullptr}};
    if (difference.baseline) {
      knob["baseline"] = ValueToJson(*difference.baseline);
    }
    if (difference.best) knob["best"] = ValueToJson(*difference.best);
    knobs.push_back(std::move(knob));
  }
  const Json json = {{"trial", trial}, {"differences", std::move(knobs)}};
  CUBICML_RETURN_IF_ERROR(session->Print(json, table));
  return kExitOk;
}

absl::StatusOr<int> CompareWithBaseline(CommandSession* session,
                                        const v1::Study& study,
                                        const v1::Trial& best) {
  CUBICML_ASSIGN_OR_RETURN(const ValueMap baseline,
                           BaselineOf(session, study, best));
  const std::vector<KnobDifference> differences =
      FindDifferences(study, baseline, WithDefaults(study, best.parameters()));
  session->Say(
      absl::StrCat(ShortTrialName(best),
                   differences.empty()
                       ? " is the best, and has the baseline's configuration"
                       : " is the best; all other knobs are the baseline's"));
  return PrintComparison(session, best.name(), differences);
}

}  // namespace

absl::StatusOr<std::map<std::string, double>> ParseMetrics(
    const std::vector<std::string>& assignments) {
  std::map<std::string, double> metrics;
  for (const std::string& assignment : assignments) {
    CUBICML_ASSIGN_OR_RETURN(const auto split, SplitAssignment(assignment));
    double number = 0;
    if (!absl::SimpleAtod(split.second, &number) || !std::isfinite(number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "metric '", split.first, "': '", split.second, "' is not a number"));
    }
    metrics[split.first] = number;
  }
  return metrics;
}

absl::StatusOr<int> Suggest(CommandSession* session,
                            const SuggestOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  CUBICML_ASSIGN_OR_RETURN(const v1::SuggestTrialsRequest request,
                           MakeSuggestRequest(study, options));
  CUBICML_ASSIGN_OR_RETURN(const v1::SuggestTrialsResponse response,
                           session->client().SuggestTrials(request));
  const std::vector<v1::Trial> trials(response.trials().begin(),
                                      response.trials().end());
  CUBICML_RETURN_IF_ERROR(
      session->Print(TrialsToJson(trials), TrialsTable(study, trials)));
  if (response.trials_size() >= std::max(1, options.count)) return kExitOk;
  session->Say(absl::StrCat(
      response.trials_size(), " of ", options.count, " trials: ",
      v1::SuggestTrialsResponse::NoTrialReason_Name(response.no_trial_reason()),
      response.no_trial_detail().empty() ? "" : ": ",
      response.no_trial_detail()));
  return response.trials_size() > 0 ? kExitOk : kExitNoTrial;
}

absl::StatusOr<int> Heartbeat(CommandSession* session,
                              const HeartbeatOptions& options) {
  v1::HeartbeatRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(),
                           ParseTrialName(options.trial));
  request.set_client_id(options.client_id);
  CUBICML_ASSIGN_OR_RETURN(const auto metrics, ParseMetrics(options.metrics));
  if (!metrics.empty() || options.step != 0) {
    request.mutable_intermediate()->set_step(options.step);
    request.mutable_intermediate()->mutable_metrics()->insert(metrics.begin(),
                                                              metrics.end());
  }
  CUBICML_ASSIGN_OR_RETURN(const v1::HeartbeatResponse response,
                           session->client().Heartbeat(request));
  const double lease = absl::ToDoubleSeconds(ToDuration(response.lease()));
  const Json json = {{"lease_s", lease},
                     {"should_stop", response.should_stop()}};
  Table table;
  table.headers = {"lease_s", "should_stop"};
  table.rows = {
      {FormatNumber(lease), response.should_stop() ? "true" : "false"}};
  CUBICML_RETURN_IF_ERROR(session->Print(json, table));
  return kExitOk;
}

absl::StatusOr<int> Complete(CommandSession* session,
                             const CompleteOptions& options) {
  v1::CompleteTrialRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(),
                           ParseTrialName(options.trial));
  request.set_client_id(options.client_id);
  CUBICML_ASSIGN_OR_RETURN(
      const v1::Trial::State state,
      ParseEnum<v1::Trial::State>(options.state, "state", ParseState));
  request.set_state(state);
  CUBICML_ASSIGN_OR_RETURN(const auto metrics, ParseMetrics(options.metrics));
  request.mutable_metrics()->insert(metrics.begin(), metrics.end());
  if (!options.reason.empty()) {
    CUBICML_ASSIGN_OR_RETURN(
        const v1::Trial::Reason reason,
        ParseEnum<v1::Trial::Reason>(options.reason, "reason", ParseReason));
    request.set_reason(reason);
  }
  request.set_reason_detail(options.detail);
  CUBICML_ASSIGN_OR_RETURN(const v1::Trial trial,
                           session->client().CompleteTrial(request));
  CUBICML_RETURN_IF_ERROR(PrintTrial(session, trial));
  return kExitOk;
}

absl::StatusOr<int> Cancel(CommandSession* session, const std::string& trial) {
  v1::CancelTrialRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(), ParseTrialName(trial));
  CUBICML_ASSIGN_OR_RETURN(const v1::Trial cancelled,
                           session->client().CancelTrial(request));
  CUBICML_RETURN_IF_ERROR(PrintTrial(session, cancelled));
  return kExitOk;
}

absl::StatusOr<int> Best(CommandSession* session, const BestOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  if (options.compare_baseline && study.objectives_size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--compare-baseline: ", study.name(), " has ", study.objectives_size(),
        " objectives, so there is no best trial but the Pareto "
        "front, which `cubicml best` shows without it"));
  }
  v1::ListOptimalTrialsRequest request;
  request.set_parent(study.name());
  request.set_page_size(options.limit);
  CUBICML_ASSIGN_OR_RETURN(const Values context,
                           ParseContext(study, options.context));
  request.mutable_context()->insert(context.begin(), context.end());
  CUBICML_ASSIGN_OR_RETURN(const v1::ListOptimalTrialsResponse response,
                           session->client().ListOptimalTrials(request));
  const std::vector<v1::Trial> trials(response.trials().begin(),
                                      response.trials().end());
  if (trials.empty()) session->Say("no trial has succeeded yet");
  if (options.compare_baseline) {
    return trials.empty() ? PrintComparison(session, nullptr, {})
                          : CompareWithBaseline(session, study, trials[0]);
  }
  CUBICML_RETURN_IF_ERROR(
      session->Print(TrialsToJson(trials), TrialsTable(study, trials)));
  return kExitOk;
}

absl::StatusOr<int> Predict(CommandSession* session,
                            const PredictOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  v1::PredictRequest request;
  request.set_parent(study.name());
  v1::Configuration* configuration = request.add_configurations();
  CUBICML_ASSIGN_OR_RETURN(const Values parameters,
                           ParseParameters(study, options.parameters));
  configuration->mutable_parameters()->insert(parameters.begin(),
                                              parameters.end());
  CUBICML_ASSIGN_OR_RETURN(const Values context,
                           ParseContext(study, options.context));
  configuration->mutable_context()->insert(context.begin(), context.end());
  CUBICML_ASSIGN_OR_RETURN(const v1::PredictResponse response,
                           session->client().Predict(request));
  if (response.predictions_size() != 1) {
    return absl::InternalError("the service gave no prediction");
  }
  const v1::Prediction& prediction = response.predictions(0);
  Json json = PredictionToJson(prediction);
  json["surrogate"] = SurrogateToJson(response.surrogate());
  Table table;
  table.headers = {"metric", "mean", "standard_deviation", "lower90",
                   "upper90"};
  const std::map<std::string, v1::Prediction::MetricPrediction> sorted(
      prediction.metrics().begin(), prediction.metrics().end());
  for (const auto& [name, metric] : sorted) {
    table.rows.push_back({name, absl::StrFormat("%.6g", metric.mean()),
                          absl::StrFormat("%.3g", metric.standard_deviation()),
                          absl::StrFormat("%.6g", metric.lower90()),
                          absl::StrFormat("%.6g", metric.upper90())});
  }
  CUBICML_RETURN_IF_ERROR(session->Print(json, table));
  session->Say(absl::StrFormat(
      "works with probability %.2f; model %d, %s, trained on %d trials",
      prediction.feasible_probability(), response.surrogate().model_version(),
      response.surrogate().kind(), response.surrogate().rows()));
  return kExitOk;
}

absl::StatusOr<int> ListTrials(CommandSession* session,
                               const ListTrialsOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const v1::Study study,
                           session->GetStudy(options.study));
  std::vector<v1::Trial> trials;
  v1::ListTrialsRequest request;
  request.set_parent(study.name());
  request.set_filter(options.filter);
  request.set_order_by(options.order_by);
  do {
    const int wanted = options.limit > 0
                           ? options.limit - static_cast<int>(trials.size())
                           : kTrialsPage;
    request.set_page_size(std::min(wanted, kTrialsPage));
    CUBICML_ASSIGN_OR_RETURN(v1::ListTrialsResponse page,
                             session->client().ListTrials(request));
    for (v1::Trial& trial : *page.mutable_trials()) {
      trials.push_back(std::move(trial));
    }
    request.set_page_token(page.next_page_token());
  } while (
      !request.page_token().empty() &&
      (options.limit == 0 || static_cast<int>(trials.size()) < options.limit));
  CUBICML_RETURN_IF_ERROR(
      session->Print(TrialsToJson(trials), TrialsTable(study, trials)));
  return kExitOk;
}

absl::StatusOr<int> GetTrial(CommandSession* session,
                             const std::string& trial) {
  v1::GetTrialRequest request;
  CUBICML_ASSIGN_OR_RETURN(*request.mutable_name(), ParseTrialName(trial));
  CUBICML_ASSIGN_OR_RETURN(const v1::Trial found,
                           session->client().GetTrial(request));
  CUBICML_RETURN_IF_ERROR(PrintTrial(session, found));
  return kExitOk;
}

}  // namespace cubicml
