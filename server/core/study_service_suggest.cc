// SPDX-License-Identifier: Apache-2.0
//
// StudyService::SuggestTrials.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"
#include "server/core/parsed_trial.h"
#include "server/core/request_check.h"
#include "server/core/resource_name.h"
#include "server/core/study_service.h"
#include "server/core/study_service_state.h"
#include "server/core/suggestion.h"
#include "server/core/time_proto.h"
#include "server/core/trial_change.h"

namespace cubicml {
namespace {

constexpr int kMaxCount = 100;
// Time that is kept for storing the trials and for the answer's way back.
constexpr double kReservedShare = 0.2;
constexpr absl::Duration kMinReserved = absl::Milliseconds(5);
constexpr absl::Duration kMaxReserved = absl::Milliseconds(500);

absl::Status CheckRequest(const v1::SuggestTrialsRequest& request) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("parent", request.parent()));
  if (request.count() < 0 || request.count() > kMaxCount) {
    return FieldError("count",
                      absl::StrCat("must be between 0 and ", kMaxCount));
  }
  CUBICML_RETURN_IF_ERROR(
      CheckText("client_id", request.client_id(), kMaxClientIdBytes));
  if (!v1::SuggestTrialsRequest::Mode_IsValid(request.mode())) {
    return FieldError("mode", "is not one that exists");
  }
  return CheckLabels("labels", request.labels());
}

absl::Duration ThinkingDeadline(absl::Duration now, absl::Duration deadline,
                                absl::Duration default_deadline) {
  const absl::Duration longest = now + default_deadline;
  if (deadline == absl::InfiniteDuration()) return longest;
  const absl::Duration reserved =
      std::clamp(kReservedShare * (deadline - now), kMinReserved, kMaxReserved);
  return std::min(deadline - reserved, longest);
}

v1::Trial MakeTrial(const StudyDefinition& definition,
                    const v1::SuggestTrialsRequest& request,
                    const Context& context, const Pick& pick, absl::Time now) {
  v1::Trial trial;
  trial.set_state(v1::Trial::ACTIVE);
  *trial.mutable_parameters() = definition.space()->FormatPoint(pick.point);
  *trial.mutable_context() = definition.space()->FormatContext(context);
  trial.set_client_id(request.client_id());
  *trial.mutable_lease_expire_time() = TimeToProto(now + definition.lease());
  trial.set_attempt(pick.attempt);
  *trial.mutable_suggestion() = pick.suggestion;
  *trial.mutable_labels() = request.labels();
  return trial;
}

v1::SuggestTrialsResponse BusyResponse(absl::string_view detail) {
  v1::SuggestTrialsResponse response;
  response.set_no_trial_reason(v1::SuggestTrialsResponse::BUSY);
  response.set_no_trial_detail(std::string(detail));
  *response.mutable_retry_delay() = DurationToProto(kBusyRetryDelay);
  return response;
}

// An answer that the wire refuses must be refused before its trials are stored.
absl::Status CheckAnswerSize(const std::vector<v1::Trial>& held,
                             const std::vector<v1::Trial>& created) {
  size_t bytes = 0;
  for (const v1::Trial& trial : held) bytes += trial.ByteSizeLong();
  for (const v1::Trial& trial : created) bytes += trial.ByteSizeLong();
  const size_t count = held.size() + created.size();
  if (bytes <= kMaxPageBytes || count == 1) return absl::OkStatus();
  return FieldError(
      "count",
      absl::StrCat(count, " trials of this study take ", bytes,
                   " bytes, more than one answer may have; ask for at most ",
                   std::max<size_t>(1, count * kMaxPageBytes / bytes)));
}

// The first `count` different ones, by number; fewer when more are too large
// for one answer, which is the client's own trials only.
void SetTrials(std::vector<v1::Trial> trials, size_t count,
               v1::SuggestTrialsResponse* response) {
  std::map<int64_t, v1::Trial> by_number;
  for (v1::Trial& trial : trials) {
    const absl::StatusOr<TrialName> name = ParseTrialName("name", trial.name());
    if (!name.ok() || by_number.size() == count) continue;
    by_number.try_emplace(name->number.value, std::move(trial));
  }
  size_t bytes = 0;
  for (auto& [number, trial] : by_number) {
    bytes += trial.ByteSizeLong();
    if (bytes > kMaxPageBytes && response->trials_size() > 0) return;
    *response->add_trials() = std::move(trial);
  }
}

// Those that were not stored may be picked again. The last first, so that they
// come back in their order.
void ReleasePicks(const SuggestionCall& call, const std::vector<Pick>& picks,
                  const std::unordered_set<std::string>& stored,
                  StudyState* study) {
  for (auto pick = picks.rbegin(); pick != picks.rend(); ++pick) {
    if (!stored.contains(pick->key)) study->Release(call.need.group, *pick);
  }
}

}  // namespace

std::vector<v1::Trial> StudyService::State::RenewHeldTrials(
    StudyState* study, const SuggestionCall& call,
    const std::string& client_id) {
  std::vector<v1::Trial> trials;
  const absl::Duration lease = study->definition().lease();
  for (const StudyState::HeldTrial& held :
       study->ListHeld(client_id, call.need.group)) {
    if (trials.size() == call.count) break;
    if (!SatisfiesFixed(held.point, call.need.fixed)) continue;
    absl::StatusOr<Change> change = ChangeTrial(
        study, held.number,
        [&](v1::Trial* trial) {
          return ApplyRenewal(lease, options.clock->Now(), trial);
        },
        RequestKey{});
    // It may have ended just now; the caller then gets another.
    if (change.ok() && change->changed) {
      trials.push_back(std::move(change->trial));
    }
  }
  return trials;
}

absl::StatusOr<std::vector<v1::Trial>> StudyService::State::CreateTrials(
    StudyState* study, const v1::SuggestTrialsRequest& request,
    const SuggestionCall& call, const std::vector<Pick>& picks,
    const std::vector<v1::Trial>& held, const RequestKey& key) {
  if (picks.empty()) return std::vector<v1::Trial>();
  const StudyDefinition& definition = study->definition();
  std::vector<v1::Trial> trials;
  for (const Pick& pick : picks) {
    trials.push_back(MakeTrial(definition, request, call.context, pick,
                               options.clock->Now()));
  }
  const absl::Status size = CheckAnswerSize(held, trials);
  if (!size.ok()) {
    ReleasePicks(call, picks, {}, study);
    return size;
  }
  const uint64_t ticket = study->NewTicket();
  absl::StatusOr<std::vector<v1::Trial>> created =
      store().CreateTrials(study->id(), std::move(trials), key);
  std::unordered_set<std::string> stored;
  if (created.ok()) {
    for (const v1::Trial& trial : *created) {
      const absl::StatusOr<ParsedTrial> parsed =
          ParseStoredTrial(definition, trial);
      if (!parsed.ok()) continue;
      stored.insert(parsed->key);
      study->Apply(*parsed, ticket, definition.lease());
    }
  }
  // Nothing was stored, or another call with this request id came first.
  ReleasePicks(call, picks, stored, study);
  return created;
}

absl::StatusOr<v1::SuggestTrialsResponse> StudyService::SuggestTrials(
    const v1::SuggestTrialsRequest& request, absl::Duration deadline,
    const std::function<bool()>& is_cancelled) {
  const absl::Duration start = state_->options.clock->Elapsed();
  CUBICML_RETURN_IF_ERROR(CheckRequest(request));
  CUBICML_ASSIGN_OR_RETURN(
      const RequestKey key,
      ParseRequestKey("SuggestTrials", request.request_id(), request));
  const absl::Duration thinking_deadline =
      ThinkingDeadline(start, deadline, state_->options.default_deadline);
  const absl::StatusOr<StudyCache::Handle> handle =
      state_->cache.AcquireBefore(request.parent(), thinking_deadline);
  if (absl::IsDeadlineExceeded(handle.status())) {
    return BusyResponse(handle.status().message());
  }
  CUBICML_RETURN_IF_ERROR(handle.status());
  const StudyCache::Handle& study = *handle;
  const SearchSpace& space = *study->definition().space();
  SuggestionCall call;
  CUBICML_ASSIGN_OR_RETURN(call.context, space.ParseContext(request.context()));
  CUBICML_ASSIGN_OR_RETURN(call.need.fixed,
                           space.ParseFixed(request.fixed_parameters()));
  CUBICML_ASSIGN_OR_RETURN(call.need.group,
                           study->FindOrAddContext(call.context));
  call.need.any_fixed = !request.fixed_parameters().empty();
  call.need.exploit = request.mode() == v1::SuggestTrialsRequest::EXPLOIT;
  call.mode = request.mode();
  call.count = static_cast<size_t>(std::max(1, request.count()));
  call.deadline = thinking_deadline;

  std::vector<v1::Trial> trials =
      state_->RenewHeldTrials(study.get(), call, request.client_id());
  v1::SuggestTrialsResponse response;
  if (!key.id.empty()) {
    CUBICML_ASSIGN_OR_RETURN(std::optional<std::vector<v1::Trial>> answered,
                             state_->store().FindCreatedTrials(key));
    if (answered.has_value()) {
      // What the first answer made, then what the client held besides.
      std::vector<v1::Trial> again = *std::move(answered);
      again.insert(again.end(), trials.begin(), trials.end());
      SetTrials(std::move(again), call.count, &response);
      return response;
    }
  }
  SuggestionChoice choice;
  if (trials.size() < call.count) {
    call.count -= trials.size();
    CUBICML_ASSIGN_OR_RETURN(choice,
                             ChooseConfigurations(call, *state_->options.clock,
                                                  &state_->timer, study.get()));
    if (study->NeedsRefill()) state_->WakeTrainer();
    const absl::Duration now = state_->options.clock->Elapsed();
    const absl::Duration thinking = now - start;
    const bool cancelled = is_cancelled != nullptr && is_cancelled();
    if (cancelled || now >= deadline) {
      ReleasePicks(call, choice.picks, {}, study.get());
      if (cancelled) return absl::CancelledError("the client went away");
      return BusyResponse("the deadline came before a trial could be made");
    }
    CUBICML_ASSIGN_OR_RETURN(std::vector<v1::Trial> created,
                             state_->CreateTrials(study.get(), request, call,
                                                  choice.picks, trials, key));
    for (v1::Trial& trial : created) {
      state_->observer().OnSuggestion(request.parent(),
                                      trial.suggestion().source(), thinking);
      trials.push_back(std::move(trial));
    }
  }
  SetTrials(std::move(trials), kMaxCount, &response);
  response.set_no_trial_reason(choice.reason);
  response.set_no_trial_detail(std::move(choice.detail));
  if (choice.retry_delay > absl::ZeroDuration()) {
    *response.mutable_retry_delay() = DurationToProto(choice.retry_delay);
  }
  return response;
}

}  // namespace cubicml
