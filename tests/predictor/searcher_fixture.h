// SPDX-License-Identifier: Apache-2.0
//
// Search problems with a known answer: small spaces, and a predictor that is a
// plain function of the knobs.

#ifndef CUBICML_TESTS_PREDICTOR_SEARCHER_FIXTURE_H_
#define CUBICML_TESTS_PREDICTOR_SEARCHER_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/rng.h"
#include "predictor/featurizer.h"
#include "predictor/predictor.h"
#include "predictor/search_space.h"
#include "predictor/searcher.h"

namespace cubicml {

// Study from text format; aborts when it cannot be parsed.
v1::Study StudyFromText(const std::string& text);

// A category parameter "name" with values v0, v1, ...
std::string CategoryText(absl::string_view name, int values);

// Scores rows of features by a function.
class FakePredictor final : public Predictor {
 public:
  using Function = std::function<Forecast(const float* row)>;

  explicit FakePredictor(Function function) : function_(std::move(function)) {}

  absl::string_view kind() const override { return "fake"; }
  absl::StatusOr<std::vector<Forecast>> Predict(
      const FeatureMatrix& features) const override;
  absl::StatusOr<std::vector<Forecast>> Score(
      const FeatureMatrix& features,
      std::span<const size_t> metrics) const override;
  const v1::SurrogateQuality& quality() const override { return quality_; }
  std::string Serialize() const override { return ""; }

 private:
  const Function function_;
  const v1::SurrogateQuality quality_;
};

// A space with a landscape: what a level of each knob is worth, and what the
// levels of a knob and of the next one are worth together, drawn from a seed.
// The space has unconditional knobs of at most a few hundred levels.
class Landscape {
 public:
  // `interaction` is the size of the second part, relative to the first.
  // `context` is that of every problem.
  Landscape(const v1::Study& study, uint64_t seed, double interaction,
            const ValueMap& context = {});

  // A problem of the whole space, without observations. The landscape must
  // outlive it.
  SearchProblem Problem() const;
  double ScoreOf(const Point& point) const;
  // By dynamic programming. REQUIRES: no constraints.
  double BestWithoutConstraints() const;
  // By looking at every valid point.
  double Best() const;

  const SearchSpace& space() const { return *space_; }
  const Context& context() const { return context_; }

  // Standard deviation of every score.
  double stddev = 0.1;
  // Probability that a point works; null: 1.
  std::function<double(const Point&)> feasible;

 private:
  // How the levels of one knob look in columns that depend on no other knob.
  struct Appearance {
    std::vector<size_t> columns;
    std::vector<std::vector<float>> levels;
  };

  void LearnAppearances();
  Point Decode(const float* row) const;
  size_t LevelOf(size_t knob, double value) const;

  std::shared_ptr<const SearchSpace> space_;
  Context context_;
  std::unique_ptr<Featurizer> featurizer_;
  std::vector<Appearance> appearances_;
  std::vector<std::vector<double>> worth_;               // [knob][level]
  std::vector<std::vector<std::vector<double>>> pairs_;  // with the next knob
  std::unique_ptr<Predictor> predictor_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_SEARCHER_FIXTURE_H_
