// SPDX-License-Identifier: Apache-2.0

#include "client/cli/baseline_trial.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

constexpr int kBaselinesPage = 500;

}  // namespace

absl::StatusOr<std::optional<v1::Trial>> FindBaselineTrial(
    TuningClient* client, const std::string& study, const ValueMap& context,
    const std::string& filter, const CallOptions& options) {
  v1::ListTrialsRequest request;
  request.set_parent(study);
  request.set_filter("source = BASELINE");
  if (!filter.empty()) {
    request.set_filter(absl::StrCat(request.filter(), " AND ", filter));
  }
  request.set_page_size(kBaselinesPage);
  do {
    CUBICML_ASSIGN_OR_RETURN(const v1::ListTrialsResponse page,
                             client->ListTrials(request, options));
    for (const v1::Trial& trial : page.trials()) {
      if (SameValues(trial.context(), context)) return trial;
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return std::nullopt;
}

}  // namespace cubicml
