// SPDX-License-Identifier: Apache-2.0
//
// One search for configurations of one context: everything it needs is copied
// into the task under the study's lock, the search itself runs outside. The
// result is a function of the task.

#ifndef CUBICML_SERVER_CORE_SEARCH_TASK_H_
#define CUBICML_SERVER_CORE_SEARCH_TASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/metric_bound.h"
#include "predictor/predictor.h"
#include "predictor/search_space.h"
#include "server/core/row_log.h"
#include "server/core/study_definition.h"

namespace cubicml {

// A trained predictor and what is told about it.
struct Model {
  std::shared_ptr<const Predictor> predictor;
  v1::SurrogateQuality quality;  // holds the version
};

// A configuration that is about to be handed out.
struct Pick {
  Point point;
  std::string key;  // SearchSpace::PointKey
  v1::Suggestion suggestion;
  int32_t attempt = 1;
  // The lost trial whose configuration this is again; 0 for none.
  TrialNumber lost;
};

enum class SearchKind {
  kDesign,        // the initial design, as a whole
  kSpaceFilling,  // more of the same, while there is no model
  kRandom,
  kModel,
};

struct SearchTask {
  SearchKind kind = SearchKind::kRandom;
  int group = 0;  // the context
  size_t count = 1;
  uint64_t seed = 0;
  std::shared_ptr<const StudyDefinition> definition;
  std::shared_ptr<const Model> model;  // may be null unless kModel
  Context context;
  FixedKnobs fixed;
  std::optional<Point> baseline;
  std::vector<MetricBound> bounds;
  RowLog::Snapshot rows;                       // of all contexts
  std::unordered_set<std::string> unmeasured;  // taken, besides `rows`
  std::vector<Point> pending;
  int64_t model_version() const {
    return model == nullptr ? 0 : model->quality.model_version();
  }
};

// At most task.count configurations, the best first; fewer when there are no
// more, none only when there are none. The searcher's codes; CANCELLED also
// when nothing was found, yet not all could be looked at.
absl::StatusOr<std::vector<Pick>> RunSearch(const SearchTask& task,
                                            std::stop_token stop);

// One random configuration that is not taken, without searching for long;
// nullopt when none was found.
std::optional<Pick> PickAtRandom(const SearchTask& task);

// The model's forecast in the words of the API, without metrics that were never
// measured.
v1::Prediction FormatPrediction(const StudyDefinition& definition,
                                const Forecast& forecast,
                                std::span<const MetricBound> bounds);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_SEARCH_TASK_H_
