// SPDX-License-Identifier: Apache-2.0
//
// Random small search spaces together with what they mean, written down a
// second time without SQL, pruning or tables: the oracle of the property tests.

#ifndef CUBICML_TESTS_PREDICTOR_RANDOM_SPACE_H_
#define CUBICML_TESTS_PREDICTOR_RANDOM_SPACE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/search_space.h"

namespace cubicml {

class RandomSpace {
 public:
  // With `required_context`, the study has a context field "gpus" that requests
  // must give, so that parsing says nothing of emptiness.
  RandomSpace(uint64_t seed, bool required_context);

  const v1::Study& study() const { return study_; }
  int64_t gpus() const { return gpus_; }
  ValueMap context() const;

  // Every valid point in lexicographic order, by filtering the full product.
  std::vector<Point> ListValid() const;
  bool IsValid(const Point& point) const;
  Point Baseline() const;
  // The values of a knob.
  const std::vector<double>& values(size_t knob) const;
  size_t knobs() const { return parameter_of_.size(); }
  bool has_conditions() const;
  // Whether an active_if may name the knob's parameter.
  bool Steers(size_t knob) const;

 private:
  // Three-valued: nullopt is NULL.
  using Truth = std::optional<bool>;
  using Rule = std::function<Truth(const Point&)>;

  struct Parameter {
    std::string name;
    bool is_text = false;
    std::vector<double> values;  // indices for categories
    size_t first_knob = 0;
    size_t count = 1;
    bool is_vector = false;
    double default_value = 0.0;
    Rule active;  // empty: always
    bool steers = false;
  };

  void AddParameter();
  void AddCondition(Parameter* parameter, v1::Parameter* proto);
  void AddConstraint();
  bool AddTable();
  bool AddVectorConstraint();
  void AddScalarConstraint();
  size_t PickScalar();
  bool HoldsEverywhere(const Point& point) const;
  void Extend(size_t parameter, Point* point, std::vector<Point>* out) const;

  Rng rng_;
  int64_t gpus_ = 8;
  v1::Study study_;
  std::vector<Parameter> parameters_;
  std::vector<size_t> parameter_of_;  // by knob
  std::vector<Rule> rules_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_PREDICTOR_RANDOM_SPACE_H_
