// SPDX-License-Identifier: Apache-2.0
//
// Predicates and constraints of a search space on values of its knobs.

#ifndef CUBICML_PREDICTOR_SPACE_EVALUATION_H_
#define CUBICML_PREDICTOR_SPACE_EVALUATION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predictor/expression.h"
#include "predictor/search_space.h"
#include "predictor/space_model.h"
#include "predictor/space_view.h"

namespace cubicml {

// In a list of levels: the knob's value is none of its levels.
inline constexpr int32_t kOffLevel = -2;
// In a list of levels: the knob is not active.
inline constexpr int32_t kNoLevel = -1;

// Not thread-safe; made for one call. Model, context and view must outlive it.
class SpaceEvaluation {
 public:
  // Looks nothing up that was remembered.
  SpaceEvaluation(const SpaceModel& model, const Context& context);
  SpaceEvaluation(const SpaceModel& model, const SpaceView& view);

  // `levels` is null or holds, for each knob of the predicate, the index of its
  // level, kNoLevel or kOffLevel; verdicts are remembered with it only.
  Verdict Evaluate(size_t predicate, const Point& values,
                   const std::vector<int32_t>* levels);
  // For messages, after Satisfies was false: `"tp * pp = 8" does not hold`.
  std::string DescribeBroken(const ConstraintModel& constraint) const;

  // Whether the parameter has a value, given those before it.
  bool IsActive(size_t parameter, const Point& values,
                const std::vector<int32_t>* levels);
  // REQUIRES: the constraint's knobs are set.
  bool Satisfies(const ConstraintModel& constraint, const Point& values,
                 const std::vector<int32_t>* levels);
  // The first constraint that the point breaks.
  std::optional<size_t> FindBroken(const Point& point);

  // Knobs that are not active become NaN; those that are and have no value take
  // that of `fixed` (if not null) or the default.
  void Complete(const FixedKnobs* fixed, Point* point);

 private:
  std::optional<size_t> FindCombination(const Predicate& predicate,
                                        const std::vector<int32_t>& levels);
  void BindVariable(const Variable& variable, const Point& values, size_t slot);
  bool SatisfiesTable(size_t table, const Point& values);

  const SpaceModel& model_;
  const Context& context_;
  const SpaceView* const view_;  // may be null
  EvaluatorPool::Lease lease_;
  Verdict last_verdict_ = Verdict::kNull;
  std::vector<SqlValue> bound_;
  std::vector<std::string> arrays_;  // texts of vectors in `bound_`
  TableRows::Matches matches_;
  TableRows::Matches narrowed_;
};

// The level of each knob of a point.
std::vector<int32_t> FindLevels(const SpaceModel& model, const Point& point);
int32_t FindLevel(const Domain& domain, double value);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_EVALUATION_H_
