// SPDX-License-Identifier: Apache-2.0
//
// A search space as one context sees it, with what was found out about it:
// verdicts of its predicates, the rows of its tables that are left, the list of
// its valid points.

#ifndef CUBICML_PREDICTOR_SPACE_VIEW_H_
#define CUBICML_PREDICTOR_SPACE_VIEW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "predictor/search_space.h"
#include "predictor/space_model.h"
#include "predictor/table_constraint.h"

namespace cubicml {

// Thread-safe. The model must outlive it.
class SpaceView {
 public:
  // Verdicts remembered for one predicate, and for all; a byte each.
  static constexpr size_t kMaxRemembered = size_t{1} << 20;
  static constexpr size_t kMaxRememberedTotal = size_t{1} << 22;
  static constexpr size_t kMaxListBytes = size_t{32} << 20;
  // Points of so many knobs that are listed at most.
  static size_t MaxListedPoints(size_t knobs);

  SpaceView(const SpaceModel& model, Context context);

  const Context& context() const { return context_; }

  // One entry for each combination of levels of the predicate's knobs: 0, or 1
  // + Verdict. Every writer of an entry writes the same, so no order is needed.
  // Null where there would be too many.
  std::atomic<uint8_t>* verdicts(size_t predicate) const {
    return verdicts_[predicate].get();
  }
  // Rows of a table that agree with the context.
  const TableRows::Matches& table_roots(size_t table) const {
    return table_roots_[table];
  }

  // What is remembered of listing the valid points is what a walk of so many
  // steps would find anew, so that no answer depends on what was asked before.

  // All valid points; null while not known, or when listing them takes more
  // steps than these.
  std::shared_ptr<const std::vector<Point>> GetValidPoints(
      int64_t max_steps) const;
  // Keeps the list, which took `steps`.
  // REQUIRES: at most MaxListedPoints().
  void SetValidPoints(std::shared_ptr<const std::vector<Point>> points,
                      int64_t steps);
  // Whether it is known that there are more valid points than `points`, or that
  // listing them takes more than `steps`.
  bool IsKnownToExceed(size_t points, int64_t steps) const;
  void SetMorePointsThan(size_t points);
  void SetMoreStepsThan(int64_t steps);

  // Memory that it takes, about.
  size_t CountBytes() const;

 private:
  const Context context_;
  size_t base_bytes_ = 0;  // of all but the list
  std::vector<std::unique_ptr<std::atomic<uint8_t>[]>> verdicts_;
  std::vector<TableRows::Matches> table_roots_;

  mutable Mutex mu_;
  std::shared_ptr<const std::vector<Point>> valid_points_ ABSL_GUARDED_BY(mu_);
  int64_t list_steps_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<size_t> more_points_than_ ABSL_GUARDED_BY(mu_);
  int64_t more_steps_than_ ABSL_GUARDED_BY(mu_) = -1;
};

// The views of the contexts that were used last: more than are searched at a
// time, or each would push out the one that is needed next. Thread-safe.
class SpaceViews {
 public:
  // So many are kept in any case, and more while all are within the bytes.
  static constexpr size_t kMinKept = 16;
  static constexpr size_t kMaxKept = 256;
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  // The model must outlive it.
  explicit SpaceViews(const SpaceModel& model) : model_(model) {}

  std::shared_ptr<SpaceView> Get(const Context& context);

 private:
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SpaceModel& model_;
  Mutex mu_;
  // The one used last at the back.
  std::vector<std::shared_ptr<SpaceView>> views_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SPACE_VIEW_H_
