// SPDX-License-Identifier: Apache-2.0

#include "server/core/search_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "predictor/searcher.h"
#include "server/core/default_neighbour.h"
#include "server/core/valid_walk.h"

namespace cubicml {
namespace {

// Enough to find a valid point wherever valid points are not very rare, and
// some milliseconds at most.
constexpr int64_t kQuickSampleSteps = 20'000;
constexpr int kQuickSamples = 16;
constexpr absl::string_view kExhaustiveSearcher = "exhaustive";

std::unique_ptr<Searcher> NewSearcher(const SearchTask& task) {
  switch (task.kind) {
    case SearchKind::kDesign:
    case SearchKind::kSpaceFilling:
      return NewSpaceFillingSearcher();
    case SearchKind::kRandom:
      return NewRandomSearcher();
    case SearchKind::kModel:
      break;
  }
  switch (task.definition->algorithm()) {
    case v1::EXHAUSTIVE:
      return NewExhaustiveSearcher();
    case v1::REINFORCE:
      return NewReinforceSearcher();
    default:
      return NewDefaultSearcher();
  }
}

v1::Trial::Source SourceOf(SearchKind kind) {
  switch (kind) {
    case SearchKind::kDesign:
    case SearchKind::kSpaceFilling:
      return v1::Trial::INITIAL_DESIGN;
    case SearchKind::kRandom:
      return v1::Trial::RANDOM;
    case SearchKind::kModel:
      return v1::Trial::SEARCH;
  }
  return v1::Trial::SOURCE_UNSPECIFIED;
}

SearchProblem StateProblem(const SearchTask& task, std::stop_token stop) {
  SearchProblem problem;
  problem.space = task.definition->space();
  problem.featurizer = &task.definition->featurizer();
  if (task.kind == SearchKind::kModel) {
    problem.predictor = task.model->predictor.get();
  }
  problem.context = task.context;
  problem.fixed = task.fixed;
  problem.maximize = task.definition->maximize();
  problem.bounds = task.bounds;
  problem.stop = std::move(stop);
  // The initial design is a function of study and context alone, so that it
  // goes on the same after a restart.
  if (task.kind == SearchKind::kDesign) {
    if (task.baseline.has_value()) {
      problem.taken.insert(problem.space->PointKey(*task.baseline));
      problem.pending.push_back(*task.baseline);
    }
    return problem;
  }
  problem.taken = task.unmeasured;
  problem.pending = task.pending;
  std::vector<const MeasuredRow*> rows;
  for (size_t i = 0; i < task.rows.size(); ++i) {
    if (task.rows[i].group == task.group) rows.push_back(&task.rows[i]);
  }
  // In the order of trials, however they arrived.
  std::sort(rows.begin(), rows.end(),
            [](const MeasuredRow* a, const MeasuredRow* b) {
              return a->number < b->number;
            });
  problem.observations.reserve(rows.size());
  for (const MeasuredRow* row : rows) {
    problem.taken.insert(row->key);
    problem.observations.push_back(
        {row->point, row->feasible, row->metrics.front()});
  }
  return problem;
}

// Says of each pick what the model expects of it.
absl::Status AddPredictions(const SearchTask& task, std::vector<Pick>* picks) {
  if (task.model == nullptr || picks->empty()) return absl::OkStatus();
  std::vector<Point> points;
  points.reserve(picks->size());
  for (const Pick& pick : *picks) points.push_back(pick.point);
  CUBICML_ASSIGN_OR_RETURN(
      const std::vector<Forecast> forecasts,
      task.model->predictor->Predict(
          task.definition->featurizer().Featurize(points, task.context)));
  for (size_t i = 0; i < picks->size(); ++i) {
    v1::Suggestion& suggestion = (*picks)[i].suggestion;
    suggestion.set_model_version(task.model_version());
    *suggestion.mutable_prediction() =
        FormatPrediction(*task.definition, forecasts[i], task.bounds);
  }
  return absl::OkStatus();
}

Pick MakePick(const SearchTask& task, Point point, absl::string_view searcher) {
  Pick pick;
  pick.key = task.definition->space()->PointKey(point);
  pick.point = std::move(point);
  pick.suggestion.set_source(SourceOf(task.kind));
  pick.suggestion.set_searcher(std::string(searcher));
  pick.suggestion.set_seed(task.seed);
  return pick;
}

// For a search that came back with nothing, which may mean only that it did not
// look everywhere: one more configuration, or none when there is none.
absl::StatusOr<std::vector<Pick>> FindOverlooked(const SearchTask& task,
                                                 const SearchProblem& problem,
                                                 absl::string_view searcher) {
  std::vector<Pick> picks;
  // It looks everywhere, or says that it cannot.
  if (searcher == kExhaustiveSearcher) return picks;
  const Existence untaken =
      FindValid(*problem.space, problem.context, problem.fixed, problem.stop,
                [&](const Point& point) {
                  if (problem.taken.contains(problem.space->PointKey(point))) {
                    return false;
                  }
                  picks.push_back(MakePick(task, point, searcher));
                  return true;
                });
  if (untaken == Existence::kUnknown) {
    return absl::CancelledError("the search came to no end");
  }
  return picks;
}

}  // namespace

absl::StatusOr<std::vector<Pick>> RunSearch(const SearchTask& task,
                                            std::stop_token stop) {
  const std::unique_ptr<Searcher> searcher = NewSearcher(task);
  SearchProblem problem = StateProblem(task, std::move(stop));
  std::vector<Pick> picks;
  // Where the defaults are not valid, a neighbour of theirs stands in for the
  // baseline: it is what the job would most likely have run.
  if (task.kind == SearchKind::kDesign && !task.baseline.has_value()) {
    std::optional<Point> near =
        FindDefaultNeighbour(*problem.space, task.definition->study(),
                             problem.context, Rng(task.seed), problem.stop);
    if (near.has_value()) {
      picks.push_back(MakePick(task, *near, "default-neighbour"));
      problem.taken.insert(picks.back().key);
      problem.pending.push_back(*std::move(near));
    }
  }
  CUBICML_ASSIGN_OR_RETURN(
      std::vector<Candidate> candidates,
      searcher->Search(problem, task.count, Rng(task.seed)));
  for (Candidate& candidate : candidates) {
    picks.push_back(
        MakePick(task, std::move(candidate.point), searcher->name()));
    if (task.kind == SearchKind::kModel) {
      picks.back().suggestion.set_acquisition(candidate.acquisition);
    }
  }
  if (picks.empty()) {
    CUBICML_ASSIGN_OR_RETURN(picks,
                             FindOverlooked(task, problem, searcher->name()));
  }
  CUBICML_RETURN_IF_ERROR(AddPredictions(task, &picks));
  return picks;
}

std::optional<Pick> PickAtRandom(const SearchTask& task) {
  const SearchSpace& space = *task.definition->space();
  Rng rng(task.seed);
  for (int i = 0; i < kQuickSamples; ++i) {
    std::optional<Point> point =
        space.Sample(task.context, task.fixed, kQuickSampleSteps, &rng);
    if (!point.has_value()) return std::nullopt;
    const std::string key = space.PointKey(*point);
    bool taken = task.unmeasured.contains(key);
    for (size_t row = 0; row < task.rows.size() && !taken; ++row) {
      taken = task.rows[row].group == task.group && task.rows[row].key == key;
    }
    if (taken) continue;
    Pick pick = MakePick(task, *std::move(point), "random");
    pick.suggestion.set_source(v1::Trial::RANDOM);
    return pick;
  }
  return std::nullopt;
}

v1::Prediction FormatPrediction(const StudyDefinition& definition,
                                const Forecast& forecast,
                                std::span<const MetricBound> bounds) {
  v1::Prediction prediction;
  const size_t metrics =
      std::min(forecast.metrics.size(), definition.metrics().size());
  for (size_t i = 0; i < metrics; ++i) {
    const MetricForecast& metric = forecast.metrics[i];
    if (!std::isfinite(metric.mean)) continue;  // never measured
    v1::Prediction::MetricPrediction& proto =
        (*prediction.mutable_metrics())[definition.metrics()[i].name];
    proto.set_mean(metric.mean);
    proto.set_standard_deviation(metric.stddev);
    proto.set_lower90(metric.lower90);
    proto.set_upper90(metric.upper90);
  }
  prediction.set_feasible_probability(
      forecast.feasible_probability *
      ProbabilityWithin(forecast.metrics, bounds));
  prediction.set_score(forecast.score);
  return prediction;
}

}  // namespace cubicml
