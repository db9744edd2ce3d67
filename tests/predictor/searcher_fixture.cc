// SPDX-License-Identifier: Apache-2.0

#include "tests/predictor/searcher_fixture.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace cubicml {

v1::Study StudyFromText(const std::string& text) {
  v1::Study study;
  CUBICML_CHECK(google::protobuf::TextFormat::ParseFromString(text, &study));
  return study;
}

std::string CategoryText(absl::string_view name, int values) {
  std::string text = absl::StrCat("parameters { name: '", name, "' category {");
  for (int i = 0; i < values; ++i) {
    absl::StrAppend(&text, " values { string_value: 'v", i, "' }");
  }
  return absl::StrCat(text, " } }\n");
}

absl::StatusOr<std::vector<Forecast>> FakePredictor::Predict(
    const FeatureMatrix& features) const {
  return Score(features, {});
}

absl::StatusOr<std::vector<Forecast>> FakePredictor::Score(
    const FeatureMatrix& features, std::span<const size_t>) const {
  std::vector<Forecast> forecasts;
  forecasts.reserve(features.rows);
  for (size_t i = 0; i < features.rows; ++i) {
    forecasts.push_back(function_(features.row(i)));
  }
  return forecasts;
}

Landscape::Landscape(const v1::Study& study, uint64_t seed, double interaction,
                     const ValueMap& context) {
  auto space = SearchSpace::Parse(study);
  CUBICML_CHECK(space.ok());
  space_ = *std::move(space);
  auto parsed = space_->ParseContext(context);
  CUBICML_CHECK(parsed.ok());
  context_ = *std::move(parsed);
  featurizer_ = std::make_unique<Featurizer>(space_);
  LearnAppearances();
  Rng rng(seed);
  const std::vector<Knob>& knobs = space_->knobs();
  for (size_t k = 0; k < knobs.size(); ++k) {
    const size_t levels = knobs[k].levels.size();
    const double peak = rng.Uniform();
    std::vector<double> worth;
    for (size_t i = 0; i < levels; ++i) {
      const double at = static_cast<double>(i) / static_cast<double>(levels);
      worth.push_back(knobs[k].kind == KnobKind::kCategory
                          ? rng.Uniform()
                          : -2.0 * (at - peak) * (at - peak));
    }
    worth_.push_back(std::move(worth));
    if (k + 1 == knobs.size()) break;
    std::vector<std::vector<double>> pairs(levels);
    for (std::vector<double>& row : pairs) {
      for (size_t j = 0; j < knobs[k + 1].levels.size(); ++j) {
        row.push_back(interaction * rng.Uniform());
      }
    }
    pairs_.push_back(std::move(pairs));
  }
  predictor_ = std::make_unique<FakePredictor>([this](const float* row) {
    const Point point = Decode(row);
    Forecast forecast;
    forecast.score = ScoreOf(point);
    forecast.score_stddev = stddev;
    forecast.feasible_probability = feasible ? feasible(point) : 1.0;
    return forecast;
  });
}

void Landscape::LearnAppearances() {
  const std::vector<Knob>& knobs = space_->knobs();
  Point first;
  for (const Knob& knob : knobs) first.push_back(knob.levels.front());
  const FeatureMatrix base =
      featurizer_->Featurize(std::vector<Point>{first}, context_);
  std::vector<int> users(base.columns, 0);
  std::vector<FeatureMatrix> features;
  std::vector<std::vector<bool>> changed(knobs.size());
  for (size_t k = 0; k < knobs.size(); ++k) {
    std::vector<Point> points;
    for (const double level : knobs[k].levels) {
      points.push_back(first);
      points.back()[k] = level;
    }
    features.push_back(featurizer_->Featurize(points, context_));
    changed[k].assign(base.columns, false);
    for (size_t c = 0; c < base.columns; ++c) {
      for (size_t i = 0; i < points.size(); ++i) {
        if (features[k].row(i)[c] != base.row(0)[c]) changed[k][c] = true;
      }
      users[c] += changed[k][c];
    }
  }
  for (size_t k = 0; k < knobs.size(); ++k) {
    Appearance appearance;
    for (size_t c = 0; c < base.columns; ++c) {
      if (changed[k][c] && users[c] == 1) appearance.columns.push_back(c);
    }
    CUBICML_CHECK(!appearance.columns.empty() || knobs[k].levels.size() == 1);
    for (size_t i = 0; i < knobs[k].levels.size(); ++i) {
      std::vector<float> look;
      for (const size_t c : appearance.columns) {
        look.push_back(features[k].row(i)[c]);
      }
      appearance.levels.push_back(std::move(look));
    }
    appearances_.push_back(std::move(appearance));
  }
}

Point Landscape::Decode(const float* row) const {
  Point point;
  for (size_t k = 0; k < appearances_.size(); ++k) {
    const Appearance& appearance = appearances_[k];
    size_t level = 0;
    for (size_t i = 0; i < appearance.levels.size(); ++i) {
      bool same = true;
      for (size_t c = 0; same && c < appearance.columns.size(); ++c) {
        same = appearance.levels[i][c] == row[appearance.columns[c]];
      }
      if (same) level = i;
    }
    point.push_back(space_->knobs()[k].levels[level]);
  }
  return point;
}

size_t Landscape::LevelOf(size_t knob, double value) const {
  const std::vector<double>& levels = space_->knobs()[knob].levels;
  return static_cast<size_t>(
      std::lower_bound(levels.begin(), levels.end(), value) - levels.begin());
}

double Landscape::ScoreOf(const Point& point) const {
  double score = 0.0;
  size_t before = 0;
  for (size_t k = 0; k < point.size(); ++k) {
    const size_t level = LevelOf(k, point[k]);
    score += worth_[k][level];
    if (k > 0) score += pairs_[k - 1][before][level];
    before = level;
  }
  return score;
}

double Landscape::BestWithoutConstraints() const {
  // Of the knobs up to this one, by its level.
  std::vector<double> best = worth_[0];
  for (size_t k = 1; k < worth_.size(); ++k) {
    std::vector<double> next;
    for (size_t j = 0; j < worth_[k].size(); ++j) {
      double top = -std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < best.size(); ++i) {
        top = std::max(top, best[i] + pairs_[k - 1][i][j]);
      }
      next.push_back(top + worth_[k][j]);
    }
    best = std::move(next);
  }
  return *std::max_element(best.begin(), best.end());
}

double Landscape::Best() const {
  double best = -std::numeric_limits<double>::infinity();
  const bool complete = space_->Enumerate(
      context_, space_->Free(), int64_t{1} << 40, [&](const Point& point) {
        best = std::max(best, ScoreOf(point));
        return true;
      });
  CUBICML_CHECK(complete);
  return best;
}

SearchProblem Landscape::Problem() const {
  SearchProblem problem;
  problem.space = space_;
  problem.featurizer = featurizer_.get();
  problem.predictor = predictor_.get();
  problem.context = context_;
  problem.fixed = space_->Free();
  return problem;
}

}  // namespace cubicml
