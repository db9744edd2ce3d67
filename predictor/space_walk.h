// SPDX-License-Identifier: Apache-2.0
//
// Depth-first search over the valid configurations of a context. Knobs are set
// in the order of declaration; each constraint is checked as soon as its last
// knob is set, values are taken from the rows of table constraints where there
// are any, and a dead end goes back to the latest knob that it is due to
// (conflict-directed backjumping), which loses no point and no order.

#ifndef CUBICML_PREDICTOR_SPACE_WALK_H_
#define CUBICML_PREDICTOR_SPACE_WALK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/rng.h"
#include "predictor/knob_set.h"
#include "predictor/search_space.h"
#include "predictor/space_evaluation.h"
#include "predictor/space_model.h"
#include "predictor/space_view.h"

namespace cubicml {

struct WalkOptions {
  const SpaceModel* model = nullptr;  // required
  const SpaceView* view = nullptr;    // required, of `model`
  const FixedKnobs* fixed = nullptr;  // required
  // How the values of a knob are ordered: by `order` if set, else at random
  // with `rng` if set, else increasing.
  SearchSpace::LevelOrder order;
  Rng* rng = nullptr;
  // Constraints that are left out; null for none.
  const std::vector<bool>* skipped = nullptr;
  std::stop_token stop;
};

// For one walk, or for many draws. Not thread-safe. What the options point to
// must outlive it.
class SpaceWalk {
 public:
  enum class End {
    kComplete,    // there are no more points
    kStopped,     // by the visitor
    kOutOfSteps,  // undecided
    kCancelled,   // stop was requested
  };

  explicit SpaceWalk(WalkOptions options);

  // Visits points until there are no more, the visitor returns false,
  // `steps_left` values have been tried, which it counts down, or stop is
  // requested, however rare points are. To be called once.
  End Run(int64_t* steps_left, const std::function<bool(const Point&)>& visit);

  // Sets one knob after the other at random: among its levels, or, where a
  // table constrains it, in proportion to the rows that are left. False when a
  // constraint is broken on the way. REQUIRES: `rng`.
  bool Draw(int64_t* steps_left);
  // The point of the last Draw that returned true.
  const Point& point() const { return values_; }

 private:
  static constexpr size_t kNoTable = ~size_t{0};

  // Where a knob stands in a table.
  struct TablePlace {
    size_t table;
    size_t column;
  };
  // A knob whose value is being chosen.
  struct Frame {
    explicit Frame(size_t knobs) : conflict(knobs) {}

    // `single` is the only value, or the values are those of a table's codes,
    // or the knob's levels.
    bool single = false;
    double single_value = 0.0;
    size_t table = kNoTable;  // whose codes these are
    size_t column = 0;
    std::vector<int32_t> codes;
    // Value i is number (start + i * stride) % count, or listed[i].
    size_t next = 0;
    size_t count = 0;
    size_t start = 0;
    size_t stride = 1;
    bool is_listed = false;
    std::vector<size_t> listed;

    // A point was visited since the frame was opened.
    bool solved = false;
    KnobSet conflict;  // earlier knobs that failures here are due to
  };

  void CollectChecks();
  bool PassesFreeConstraints();
  // Finds whether the knob has a value at all; true when that is decided: one
  // value, or none.
  bool OpenSingle(size_t knob, Frame* frame);
  void Open(size_t knob);
  void SetOrder(size_t knob, Frame* frame);
  // The table with the fewest rows left that the knob is a column of.
  size_t FindGuide(size_t knob, TablePlace* place) const;
  bool TryNext(size_t knob);
  // Sets the knob and checks what can be checked; notes the conflict.
  bool Assign(size_t knob, double value, int32_t level);
  // The knob to go on with after `knob` has no more values; -1 at the end.
  std::ptrdiff_t BackJump(size_t knob);
  bool DrawKnob(size_t knob);

  const WalkOptions options_;
  const SpaceModel& model_;
  SpaceEvaluation evaluation_;

  // By knob.
  std::vector<std::vector<size_t>> checks_;  // constraints that end there
  std::vector<std::vector<TablePlace>> places_;
  // By constraint, table column, and parameter: whose knobs they depend on.
  std::vector<KnobSet> constraint_knobs_;
  std::vector<std::vector<KnobSet>> column_knobs_;  // those before the column
  std::vector<KnobSet> activity_knobs_;

  bool passes_ = false;  // constraints without knobs
  std::vector<Frame> frames_;
  Point values_;
  std::vector<int32_t> levels_;
  std::vector<bool> active_;  // by parameter
  // By table: the rows left before each of its columns.
  std::vector<std::vector<TableRows::Matches>> matches_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_WALK_H_
