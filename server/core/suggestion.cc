// SPDX-License-Identifier: Apache-2.0

#include "server/core/suggestion.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/core/optimal_trials.h"
#include "server/core/valid_walk.h"

namespace cubicml {
namespace {

// How soon a running trial may be lost, and its configuration free again.
constexpr absl::Duration kExhaustedRetryDelay = absl::Seconds(30);

// One call while it looks for configurations.
class Chooser {
 public:
  Chooser(const SuggestionCall& call, const Clock& clock, SearchTimer* timer,
          StudyState* study)
      : call_(call), clock_(clock), timer_(timer), study_(*study) {}

  absl::StatusOr<SuggestionChoice> Run() {
    absl::Status status;
    if (call_.mode == v1::SuggestTrialsRequest::REMEASURE_BASELINE) {
      status = TakeBaseline();
    } else {
      if (call_.mode == v1::SuggestTrialsRequest::EXPLOIT) TakeBestMeasured();
      status = Explore();
    }
    if (!status.ok()) {
      for (const Pick& pick : choice_.picks) {
        study_.Release(call_.need.group, pick);
      }
      return status;
    }
    return std::move(choice_);
  }

 private:
  size_t missing() const { return call_.count - choice_.picks.size(); }
  const SearchSpace& space() const { return *study_.definition().space(); }
  bool IsValid(const Point& point) const {
    return space().CheckValid(point, call_.context, call_.need.fixed).ok();
  }

  absl::Status TakeBaseline() {
    CUBICML_RETURN_IF_ERROR(
        space().Baseline(call_.context, space().Free()).status());
    while (missing() > 0) {
      std::optional<Pick> pick = study_.Baseline(call_.need.group);
      if (!pick.has_value() || !IsValid(pick->point)) {
        if (pick.has_value()) study_.Release(call_.need.group, *pick);
        return absl::FailedPreconditionError(
            "the baseline is not valid in this context with these "
            "fixed_parameters");
      }
      choice_.picks.push_back(*std::move(pick));
    }
    return absl::OkStatus();
  }

  // The best that is still valid: a study may have gained constraints since.
  void TakeBestMeasured() {
    const RowLog::Snapshot rows = study_.Rows();
    const std::optional<size_t> best = study_.BestRow(call_.need.group);
    if (!best.has_value() || *best >= rows.size()) return;
    const auto fits = [&](size_t i) {
      return SatisfiesFixed(rows[i].point, call_.need.fixed) &&
             IsValid(rows[i].point);
    };
    std::vector<size_t> order = {*best};
    if (!fits(*best)) {
      order = RankConfigurations(study_.definition(), rows, call_.need.group);
    }
    const auto found = std::find_if(order.begin(), order.end(), fits);
    if (found == order.end()) return;
    Pick pick;
    pick.point = rows[*found].point;
    pick.key = rows[*found].key;
    pick.suggestion.set_source(v1::Trial::REPEAT);
    choice_.picks.assign(call_.count, pick);
  }

  absl::Status Explore() {
    while (missing() > 0) {
      const absl::Duration left = call_.deadline - clock_.Elapsed();
      const size_t before = choice_.picks.size();
      SearchTask task;
      switch (study_.TakeAtHand(call_.need, missing(), &choice_.picks, &task)) {
        case StudyState::Step::kPicked:
          DropInvalid(before);
          continue;
        case StudyState::Step::kExhausted:
          SayExhausted();
          return absl::OkStatus();
        case StudyState::Step::kWait:
          if (left <= absl::ZeroDuration()) {
            PickOneAtRandom();
            return absl::OkStatus();
          }
          study_.WaitForSearch(call_.need.group, left);
          continue;
        case StudyState::Step::kSearch:
          break;
      }
      CUBICML_ASSIGN_OR_RETURN(const bool go_on, Search(task, left));
      if (!go_on) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Returns whether it is worth looking further.
  absl::StatusOr<bool> Search(const SearchTask& task, absl::Duration left) {
    absl::StatusOr<std::vector<Pick>> found =
        absl::CancelledError("no time is left");
    if (left > absl::ZeroDuration()) {
      const SearchDeadline deadline(timer_, call_.deadline);
      found = RunSearch(task, deadline.token());
    }
    const absl::Status status = found.status();
    const bool nothing = found.ok() && found->empty();
    const size_t before = choice_.picks.size();
    study_.FinishSearch(call_.need, task, std::move(found), call_.count,
                        &choice_.picks);
    DropInvalid(before);
    if (nothing && call_.need.any_fixed) {
      SayExhausted();
      return false;
    }
    if (status.ok()) return true;
    if (absl::IsFailedPrecondition(status)) return status;
    // A model that fails, or a search that takes too long, costs no one a
    // training run.
    if (!absl::IsCancelled(status)) {
      CUBICML_LOG(ERROR) << "a search failed"
                         << Field("study", study_.definition().name())
                         << Field("error", status.ToString());
    }
    PickOneAtRandom();
    return false;
  }

  void PickOneAtRandom() {
    const SearchTask task = study_.MakeRandomTask(call_.need);
    std::optional<Pick> pick = PickAtRandom(task);
    if (pick.has_value() && study_.Reserve(call_.need.group, *pick)) {
      choice_.picks.push_back(*std::move(pick));
    }
    DropInvalid(0);
    if (missing() == 0) return;
    SayBusy("no search ended before the deadline, or within its bounds");
  }

  // Never lets out what breaks a constraint, whoever chose it. What is dropped
  // stays taken, so that it is not chosen again.
  void DropInvalid(size_t first) {
    std::vector<Pick>& picks = choice_.picks;
    for (size_t i = first; i < picks.size();) {
      const absl::Status valid =
          space().CheckValid(picks[i].point, call_.context, call_.need.fixed);
      if (valid.ok()) {
        ++i;
        continue;
      }
      // Lost configurations may be from before the study gained a constraint.
      if (picks[i].lost.value == 0) {
        CUBICML_LOG(ERROR) << "an invalid suggestion was dropped"
                           << Field("study", study_.definition().name())
                           << Field("searcher", picks[i].suggestion.searcher())
                           << Field("why", valid.ToString());
      }
      study_.Discard(call_.need.group, picks[i]);
      picks.erase(picks.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // Nothing is left to hand out; says why.
  void SayExhausted() {
    switch (AnyValid()) {
      case Existence::kYes:
        SayAllTried();
        return;
      case Existence::kNo:
        SayNoneValid();
        return;
      case Existence::kUnknown:
        SayBusy("whether any configuration is valid was not found out");
        return;
    }
  }

  // With the parameters that are fixed.
  Existence AnyValid() {
    const bool general = !call_.need.any_fixed;
    if (general) {
      const Existence known = study_.AnyValid(call_.need.group);
      if (known != Existence::kUnknown) return known;
    }
    const SearchDeadline deadline(timer_, call_.deadline);
    const Existence any =
        FindValid(space(), call_.context, call_.need.fixed, deadline.token(),
                  [](const Point&) { return true; });
    if (general) study_.RememberAnyValid(call_.need.group, any);
    return any;
  }

  void SayAllTried() {
    choice_.reason = v1::SuggestTrialsResponse::EXHAUSTED;
    const bool running = study_.AnyRunning(call_.need.group);
    choice_.detail = running
                         ? "every valid configuration was tried or is running"
                         : "every valid configuration was tried";
    if (running) choice_.retry_delay = kExhaustedRetryDelay;
  }

  void SayNoneValid() {
    choice_.reason = v1::SuggestTrialsResponse::NO_VALID_CONFIGURATION;
    const absl::StatusOr<Point> baseline =
        space().Baseline(call_.context, call_.need.fixed);
    choice_.detail = absl::StrCat(
        "no configuration satisfies the constraints in this context",
        call_.need.any_fixed ? " with these fixed_parameters" : "",
        baseline.ok() ? ""
                      : absl::StrCat("; the defaults break: ",
                                     baseline.status().message()));
  }

  void SayBusy(absl::string_view detail) {
    choice_.reason = v1::SuggestTrialsResponse::BUSY;
    choice_.detail = std::string(detail);
    choice_.retry_delay = kBusyRetryDelay;
  }

  const SuggestionCall& call_;
  const Clock& clock_;
  SearchTimer* const timer_;
  StudyState& study_;
  SuggestionChoice choice_;
};

}  // namespace

absl::StatusOr<SuggestionChoice> ChooseConfigurations(
    const SuggestionCall& call, const Clock& clock, SearchTimer* timer,
    StudyState* study) {
  return Chooser(call, clock, timer, study).Run();
}

}  // namespace cubicml
