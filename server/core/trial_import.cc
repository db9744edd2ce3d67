// SPDX-License-Identifier: Apache-2.0

#include "server/core/trial_import.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/request_check.h"
#include "server/core/time_proto.h"
#include "server/core/trial_change.h"
#include "server/core/trial_state.h"

namespace cubicml {
namespace {

absl::Status CheckOutcome(const v1::Trial& given,
                          const StudyDefinition& definition) {
  if (!IsMeasured(given.state())) {
    return FieldError("state", "must be SUCCEEDED or INFEASIBLE");
  }
  if (!v1::Trial::Reason_IsValid(given.reason()) ||
      !ReasonFits(given.reason(), given.state())) {
    return FieldError("reason",
                      absl::StrCat("does not fit the state ",
                                   v1::Trial::State_Name(given.state())));
  }
  CUBICML_RETURN_IF_ERROR(
      CheckText("reason_detail", given.reason_detail(), kMaxReasonDetailBytes));
  CUBICML_RETURN_IF_ERROR(definition.CheckMetrics(given.metrics()));
  if (given.state() != v1::Trial::SUCCEEDED) return absl::OkStatus();
  const std::string missing = definition.MissingObjective(given.metrics());
  if (missing.empty()) return absl::OkStatus();
  return FieldError(absl::StrCat("metrics.", missing),
                    absl::StrCat("'", missing,
                                 "' is missing; SUCCEEDED needs every "
                                 "objective"));
}

absl::Status CheckEndTime(const v1::Trial& given) {
  const google::protobuf::Timestamp& end = given.end_time();
  if (end.seconds() >= 0 && end.seconds() <= kMaxTimestampSeconds &&
      end.nanos() >= 0 && end.nanos() < 1'000'000'000) {
    return absl::OkStatus();
  }
  return FieldError("end_time", "must lie between 1970 and 9999");
}

}  // namespace

absl::StatusOr<v1::Trial> ImportCheck::Check(const v1::Trial& given,
                                             absl::Time now) {
  const StudyDefinition& definition = study_.definition();
  CUBICML_RETURN_IF_ERROR(CheckOutcome(given, definition));
  CUBICML_RETURN_IF_ERROR(CheckLabels("labels", given.labels()));
  if (given.has_end_time()) CUBICML_RETURN_IF_ERROR(CheckEndTime(given));
  const SearchSpace& space = *definition.space();
  CUBICML_ASSIGN_OR_RETURN(const Context context,
                           space.ParseContext(given.context()));
  CUBICML_ASSIGN_OR_RETURN(const Point point,
                           space.ParsePoint(given.parameters(), context));
  v1::Trial trial;
  trial.set_state(given.state());
  *trial.mutable_parameters() = space.FormatPoint(point);
  *trial.mutable_context() = space.FormatContext(context);
  *trial.mutable_metrics() = given.metrics();
  trial.set_reason(given.reason());
  if (given.state() == v1::Trial::INFEASIBLE &&
      given.reason() == v1::Trial::REASON_UNSPECIFIED) {
    trial.set_reason(v1::Trial::OTHER);
  }
  trial.set_reason_detail(given.reason_detail());
  trial.set_attempt(1);
  *trial.mutable_labels() = given.labels();
  *trial.mutable_end_time() =
      given.has_end_time() ? given.end_time() : TimeToProto(now);
  trial.mutable_suggestion()->set_source(v1::Trial::IMPORTED);
  CUBICML_RETURN_IF_ERROR(Judge(context, space.PointKey(point), &trial));
  return trial;
}

absl::Status ImportCheck::Judge(const Context& context, const std::string& key,
                                v1::Trial* trial) {
  auto it = baselines_.find(context.key);
  if (it == baselines_.end()) {
    CUBICML_ASSIGN_OR_RETURN(StudyState::ContextBaseline known,
                             study_.AddContext(context));
    it = baselines_.emplace(context.key, std::move(known)).first;
  }
  const StudyDefinition& definition = study_.definition();
  StudyState::ContextBaseline& baseline = it->second;
  const bool is_baseline = baseline.key == key;
  ApplyMetricConstraints(
      definition,
      is_baseline ? BaselineMetrics() : baseline.tally.Means(definition),
      trial);
  if (is_baseline && trial->state() == v1::Trial::SUCCEEDED) {
    baseline.tally.Add(definition.ParseMetrics(trial->metrics()));
  }
  return absl::OkStatus();
}

}  // namespace cubicml
