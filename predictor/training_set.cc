// SPDX-License-Identifier: Apache-2.0

#include "predictor/training_set.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/status_macros.h"

namespace cubicml {
namespace {

constexpr int kFolds = 5;
// Of the measurements of a metric with a bound, those nearest to it, whose
// distances count in full; at least this part of a middling distance.
constexpr double kFocusedShare = 0.25;
constexpr double kLeastWidth = 1e-3;
// Of contexts; the others may be outliers.
constexpr double kTypicalShare = 0.75;

// Whether each row has what is to be learnt, and how good it is.
struct Choice {
  size_t index = 0;
  double quality = 0.0;  // higher is better within a group
  int group = 0;
  double weight = 1.0;
};

// The best of each group in turn, then the second of each, and so on.
std::vector<size_t> RankWithinGroups(const std::vector<Choice>& choices) {
  std::map<int, std::vector<size_t>> groups;
  for (size_t i = 0; i < choices.size(); ++i) {
    groups[choices[i].group].push_back(i);
  }
  for (auto& [group, rows] : groups) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      return choices[a].quality > choices[b].quality;
    });
  }
  std::vector<size_t> order;
  std::vector<size_t> ranks(choices.size());
  for (const auto& [group, rows] : groups) {
    for (size_t rank = 0; rank < rows.size(); ++rank) ranks[rows[rank]] = rank;
    order.insert(order.end(), rows.begin(), rows.end());
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  return order;
}

// Whether rows of high quality are wanted more than others.
enum class Preference { kNone, kBest };

// Indices into `choices`, in order.
std::vector<size_t> SampleRows(const std::vector<Choice>& choices,
                               size_t max_rows, Preference preference,
                               Rng* rng) {
  std::vector<size_t> all(choices.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (choices.size() <= max_rows) return all;
  std::vector<bool> taken(choices.size(), false);
  std::vector<size_t> kept;
  const auto take = [&](size_t i) {
    if (taken[i] || kept.size() == max_rows) return;
    taken[i] = true;
    kept.push_back(i);
  };
  // A quarter: the last.
  for (size_t i = 0; i < max_rows / 4; ++i) take(choices.size() - 1 - i);
  // A quarter: the best of each group in turn.
  const size_t half = max_rows / 2;
  if (preference == Preference::kBest) {
    for (const size_t i : RankWithinGroups(choices)) {
      if (kept.size() < half) take(i);
    }
  }
  // The others: at random, by weight (Efraimidis and Spirakis, 2006).
  std::vector<std::pair<double, size_t>> keys;
  for (const size_t i : all) {
    keys.emplace_back(-std::log(1.0 - rng->Uniform()) / choices[i].weight, i);
  }
  std::sort(keys.begin(), keys.end());
  for (const auto& [key, i] : keys) take(i);
  std::sort(kept.begin(), kept.end());
  return kept;
}

// How good a row is, for sampling.
double Quality(const Dataset& dataset, size_t i) {
  const DatasetRow& row = dataset.rows[i];
  if (!row.feasible || std::isnan(row.metrics[0])) return -HUGE_VAL;
  return dataset.metrics[0].maximize ? row.metrics[0] : -row.metrics[0];
}

// Equal configurations must be in one fold: a repeat would give the answer
// away.
std::vector<int> DealFolds(const FeatureMatrix& features, Rng* rng) {
  std::unordered_map<std::string, size_t> ids;
  std::vector<size_t> id_of_row(features.rows);
  for (size_t i = 0; i < features.rows; ++i) {
    const char* bytes = reinterpret_cast<const char*>(features.row(i));
    const std::string key(bytes, features.columns * sizeof(float));
    id_of_row[i] = ids.emplace(key, ids.size()).first->second;
  }
  std::vector<size_t> deck(ids.size());
  std::iota(deck.begin(), deck.end(), size_t{0});
  rng->Shuffle(&deck);
  std::vector<int> folds(features.rows);
  for (size_t i = 0; i < features.rows; ++i) {
    folds[i] = static_cast<int>(deck[id_of_row[i]] % kFolds);
  }
  return folds;
}

void AppendRow(const FeatureMatrix& from, size_t i, FeatureMatrix* to) {
  to->columns = from.columns;
  to->values.insert(to->values.end(), from.row(i), from.row(i) + from.columns);
  ++to->rows;
}

// Numbers what occurs from 0 without gaps. Returns how many there are.
int Renumber(std::vector<int>* values) {
  std::map<int, int> numbers;
  for (int& value : *values) {
    value =
        numbers.emplace(value, static_cast<int>(numbers.size())).first->second;
  }
  return std::max(1, static_cast<int>(numbers.size()));
}

// Of values that may be reordered. There is one at least.
double Quantile(double share, std::vector<double>* values) {
  const auto at = static_cast<ptrdiff_t>(
      share * static_cast<double>(values->size() - 1) + 0.5);
  std::nth_element(values->begin(), values->begin() + at, values->end());
  return (*values)[static_cast<size_t>(at)];
}

// The ends of the bounds of a metric, on the scale of `scale`. Of what is
// searched for, the first metric, none: it is to be as good as can be, not only
// good enough.
std::vector<double> FindEnds(const TrainingSet& set, size_t metric,
                             const TargetScale& scale) {
  std::vector<double> ends;
  if (metric == 0) return ends;
  for (const MetricBound& bound : set.bounds) {
    if (bound.metric != metric) continue;
    for (const double end : {bound.min, bound.max}) {
      const double x = scale.Forward(end);
      if (std::isfinite(x)) ends.push_back(x);
    }
  }
  return ends;
}

// How far from the middle one of them most are.
double Spread(std::vector<double> values) {
  const double middle = Quantile(0.5, &values);
  for (double& value : values) value = std::abs(value - middle);
  return Quantile(kTypicalShare, &values);
}

// How far `values` are from the focus where they are near it, but for those
// that are there. 0: all are there.
double NearDistance(const std::vector<double>& values, double focus) {
  std::vector<double> distances;
  for (const double value : values) {
    if (value != focus) distances.push_back(std::abs(value - focus));
  }
  if (distances.empty()) return 0.0;
  // What is only noise around the focus must not fill the whole scale.
  const double least = kLeastWidth * Quantile(0.5, &distances);
  return std::max(Quantile(kFocusedShare, &distances), least);
}

// The middle value of each group.
std::vector<double> FindLevels(const std::vector<double>& values,
                               const std::vector<Choice>& choices) {
  std::map<int, std::vector<double>> groups;
  for (size_t i = 0; i < values.size(); ++i) {
    groups[choices[i].group].push_back(values[i]);
  }
  std::vector<double> levels;
  for (auto& [group, of_group] : groups) {
    levels.push_back(Quantile(0.5, &of_group));
  }
  return levels;
}

// Sharpens a scale at `ends`; `values` are on it.
void Focus(const std::vector<double>& values,
           const std::vector<Choice>& choices, std::vector<double> ends,
           TargetScale* scale) {
  if (ends.empty() || values.empty()) return;
  const double focus = Quantile(0.5, &ends);
  const double near = NearDistance(values, focus);
  if (near == 0.0) return;
  // Contexts differ by much more where their bounds or their levels do: then
  // all of that counts in full, or effects would not add up over contexts.
  scale->width =
      std::max({near, Spread(ends), Spread(FindLevels(values, choices))});
  scale->focus = focus;
  double furthest = 0.0;
  for (const double value : values) {
    furthest = std::max(furthest, std::abs(value - focus));
  }
  scale->limit = std::asinh(furthest / scale->width);
}

TargetScale ChooseScale(const TrainingSet& set, size_t metric,
                        const std::vector<double>& values,
                        const std::vector<Choice>& choices) {
  TargetScale scale;
  scale.logarithmic = std::all_of(values.begin(), values.end(),
                                  [](double v) { return v > 0.0; });
  std::vector<double> forward;
  for (const double value : values) forward.push_back(scale.Forward(value));
  Focus(forward, choices, FindEnds(set, metric, scale), &scale);
  double sum = 0.0;
  double squares = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += choices[i].weight * scale.Forward(values[i]);
    total += choices[i].weight;
  }
  scale.centre = total > 0.0 ? sum / total : 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double y = scale.Forward(values[i]);  // scale.scale is still 1
    squares += choices[i].weight * y * y;
  }
  const double stddev = total > 0.0 ? std::sqrt(squares / total) : 0.0;
  if (stddev > 1e-12 * std::max(1.0, std::abs(scale.centre))) {
    scale.scale = stddev;
  }
  return scale;
}

// What the rows of `picked`, indices into the others, have.
TargetRows Gather(const FeatureMatrix& features, const std::vector<int>& folds,
                  const std::vector<Choice>& choices,
                  const std::vector<double>& values,
                  const std::vector<size_t>& picked) {
  TargetRows out;
  out.features.columns = features.columns;
  for (const size_t k : picked) {
    const size_t i = choices[k].index;
    out.index.push_back(i);
    AppendRow(features, i, &out.features);
    out.targets.push_back(values[k]);
    out.weights.push_back(choices[k].weight);
    out.groups.push_back(choices[k].group);
    out.folds.push_back(folds[i]);
  }
  out.group_count = Renumber(&out.groups);
  out.fold_count = Renumber(&out.folds);
  out.constant = std::all_of(out.targets.begin(), out.targets.end(),
                             [&](double v) { return v == out.targets[0]; });
  return out;
}

// Which measurements of a metric say the most: of an objective the best, of a
// metric with bounds those nearest to them, of others none. `targets` are on
// `scale`.
Preference SetQualities(const TrainingSet& set, size_t metric,
                        const TargetScale& scale,
                        const std::vector<double>& targets,
                        std::vector<Choice>* choices) {
  const std::vector<double> ends = FindEnds(set, metric, scale);
  if (ends.empty() && !set.metrics[metric].objective) return Preference::kNone;
  const bool minimize = !set.metrics[metric].maximize;
  for (size_t i = 0; i < targets.size(); ++i) {
    double quality = minimize ? -targets[i] : targets[i];
    if (!ends.empty()) quality = -HUGE_VAL;
    for (const double end : ends) {
      quality = std::max(quality, -std::abs(targets[i] - end));
    }
    (*choices)[i].quality = quality;
  }
  return Preference::kBest;
}

// Columns that are too large are made smaller, by one factor in both.
void ScaleColumns(TrainingSet* set) {
  const size_t columns = set->features.columns;
  set->column_scales.assign(columns, 1.0F);
  FeatureMatrix* const parts[] = {&set->features, &set->labelled.features};
  for (size_t c = 0; c < columns; ++c) {
    float largest = 1.0F;
    for (const FeatureMatrix* features : parts) {
      for (size_t i = 0; i < features->rows; ++i) {
        largest = std::max(largest, std::abs(features->row(i)[c]));
      }
    }
    set->column_scales[c] = 1.0F / largest;
  }
  for (FeatureMatrix* features : parts) {
    for (size_t k = 0; k < features->values.size(); ++k) {
      features->values[k] *= set->column_scales[k % columns];
    }
  }
}

}  // namespace

RegressionProblem TargetRows::problem() const {
  RegressionProblem problem;
  problem.features = &features;
  problem.targets = targets;
  problem.weights = weights;
  problem.groups = groups;
  problem.group_count = group_count;
  problem.folds = folds;
  problem.fold_count = fold_count;
  return problem;
}

absl::StatusOr<TrainingSet> MakeTrainingSet(const Dataset& dataset,
                                            size_t max_rows, Rng* rng) {
  CUBICML_RETURN_IF_ERROR(CheckDataset(dataset));
  std::vector<Choice> choices;
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    const DatasetRow& row = dataset.rows[i];
    choices.push_back({i, Quality(dataset, i), row.group, row.weight});
  }
  TrainingSet set;
  set.metrics = dataset.metrics;
  set.bounds = dataset.bounds;
  set.features.columns = dataset.features.columns;
  for (const size_t i : SampleRows(choices, max_rows, Preference::kBest, rng)) {
    AppendRow(dataset.features, i, &set.features);
    set.rows.push_back(dataset.rows[i]);
  }
  LabelledRows& labelled = set.labelled;
  labelled.features.columns = set.features.columns;
  for (const size_t i : SampleRows(choices, max_rows, Preference::kNone, rng)) {
    AppendRow(dataset.features, i, &labelled.features);
    labelled.feasible.push_back(dataset.rows[i].feasible);
    labelled.weights.push_back(dataset.rows[i].weight);
  }
  ScaleColumns(&set);
  set.folds = DealFolds(set.features, rng);
  labelled.folds = choices.size() <= max_rows
                       ? set.folds
                       : DealFolds(labelled.features, rng);
  return set;
}

TargetRows SelectMetric(const TrainingSet& set, size_t metric, size_t max_rows,
                        Rng* rng) {
  std::vector<Choice> choices;
  std::vector<double> values;
  for (size_t i = 0; i < set.rows.size(); ++i) {
    const DatasetRow& row = set.rows[i];
    if (metric >= row.metrics.size() || std::isnan(row.metrics[metric])) {
      continue;
    }
    choices.push_back({i, 0.0, row.group, row.weight});
    values.push_back(row.metrics[metric]);
  }
  const TargetScale scale = ChooseScale(set, metric, values, choices);
  for (double& value : values) value = scale.Forward(value);
  const Preference preference =
      SetQualities(set, metric, scale, values, &choices);
  TargetRows rows = Gather(set.features, set.folds, choices, values,
                           SampleRows(choices, max_rows, preference, rng));
  rows.scale = scale;
  return rows;
}

TargetRows SelectFeasibility(const TrainingSet& set, size_t max_rows,
                             Rng* rng) {
  std::vector<Choice> choices;
  std::vector<double> labels;
  const LabelledRows& rows = set.labelled;
  for (size_t i = 0; i < rows.feasible.size(); ++i) {
    choices.push_back({i, 0.0, 0, rows.weights[i]});
    labels.push_back(rows.feasible[i] ? 1.0 : -1.0);
  }
  // No preference for failures either: it would bias the probability.
  return Gather(rows.features, rows.folds, choices, labels,
                SampleRows(choices, max_rows, Preference::kNone, rng));
}

}  // namespace cubicml
