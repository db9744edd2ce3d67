// SPDX-License-Identifier: Apache-2.0
//
// The validated search space of a study. It is parsed once, from the proto,
// and only this type is accepted further in: whoever holds a SearchSpace need
// not check it again.
//
// Inside, a configuration is a Point: one double for each knob, in the order of
// declaration, a vector parameter (`repeat`) being that many knobs.

#ifndef CUBICML_PREDICTOR_SEARCH_SPACE_H_
#define CUBICML_PREDICTOR_SEARCH_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/rng.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

// Name to value, as requests carry them.
using ValueMap = google::protobuf::Map<std::string, v1::Value>;

// The value of each knob: an integer's or number's own value, a category's
// index among its values, NaN where the knob is not active.
using Point = std::vector<double>;

// What a job is. Made by SearchSpace::ParseContext.
struct Context {
  struct Field {
    bool present = false;
    double number = 0.0;  // integers, numbers, booleans
    std::string text;     // strings
  };
  std::vector<Field> fields;  // in the order of declaration
  // Equal contexts have equal keys, and only they: a canonical encoding.
  std::string key;
};

enum class KnobKind { kInteger, kNumber, kCategory };

// One scalar knob.
struct Knob {
  std::string name;      // "tp"; "sharding[3]" for an element of a vector
  size_t parameter = 0;  // index into Study.parameters
  int element = -1;      // in its vector; -1 for a scalar
  KnobKind kind = KnobKind::kInteger;
  bool log_scale = false;
  // The values that are suggested, strictly increasing (a category's are
  // 0, 1, ..., n - 1). A number without a step accepts every value between the
  // first and the last.
  std::vector<double> levels;
  bool continuous = false;
  bool conditional = false;  // has active_if
};

// Knobs that the caller has decided: one entry for each knob, NaN where free.
using FixedKnobs = std::vector<double>;

// Immutable and thread-safe.
class SearchSpace {
 public:
  // INVALID_ARGUMENT with the path of the field, e.g.
  // "parameters[2].integer.max", in FieldError form; also when the space has
  // no context and its constraints leave nothing, or its baseline breaks a
  // constraint. Limits: 256 parameters, 1,000 knobs, 10,000 values of a
  // domain, 256 constraints, expressions of 4 KiB, tables of 100,000 rows.
  static absl::StatusOr<std::shared_ptr<const SearchSpace>> Parse(
      const v1::Study& study);

  virtual ~SearchSpace() = default;

  virtual const std::vector<Knob>& knobs() const = 0;
  virtual const std::vector<v1::ContextField>& context_fields() const = 0;

  // ---- Borders ----

  // Fills in defaults. INVALID_ARGUMENT naming "context.FIELD": unknown,
  // missing, or of the wrong type.
  virtual absl::StatusOr<Context> ParseContext(
      const ValueMap& context) const = 0;
  // A complete, valid configuration. INVALID_ARGUMENT naming
  // "parameters.NAME": unknown, missing, wrong type, not finite, outside the
  // range, not on the grid, given although inactive; or "constraints[i]" with
  // its text. An integer is accepted where a number is expected when exact.
  virtual absl::StatusOr<Point> ParsePoint(const ValueMap& parameters,
                                           const Context& context) const = 0;
  // Some of the parameters. INVALID_ARGUMENT naming "fixed_parameters.NAME".
  virtual absl::StatusOr<FixedKnobs> ParseFixed(
      const ValueMap& parameters) const = 0;
  // Nothing fixed.
  virtual FixedKnobs Free() const = 0;
  // Typed values of the active knobs.
  virtual ValueMap FormatPoint(const Point& point) const = 0;
  virtual ValueMap FormatContext(const Context& context) const = 0;
  // Equal configurations have equal keys, and only they.
  virtual std::string PointKey(const Point& point) const = 0;

  // ---- Validity ----

  // The defaults, with inactive knobs NaN, and fixed knobs as given.
  // FAILED_PRECONDITION naming the constraint when they break one in this
  // context.
  virtual absl::StatusOr<Point> Baseline(const Context& context,
                                         const FixedKnobs& fixed) const = 0;
  // OK, or INVALID_ARGUMENT naming the first constraint that is broken, the
  // knob whose activity is wrong, or the fixed knob that is not as fixed.
  virtual absl::Status CheckValid(const Point& point, const Context& context,
                                  const FixedKnobs& fixed) const = 0;

  // ---- Walking the valid configurations ----

  // Visits valid points (on levels; continuous knobs on their 1,025) in
  // lexicographic order, pruning by each constraint as soon as its knobs are
  // set, until the visitor returns false. Returns true when all were visited,
  // false when the visitor stopped or after `max_steps` partial assignments.
  virtual bool Enumerate(
      const Context& context, const FixedKnobs& fixed, int64_t max_steps,
      const std::function<bool(const Point&)>& visit) const = 0;
  // A random valid point, over the levels; nullopt when none was found within
  // `max_steps` partial assignments. Uniform over the valid points where few
  // enough to count, else by randomised depth-first search with restarts,
  // which only approximates it.
  virtual std::optional<Point> Sample(const Context& context,
                                      const FixedKnobs& fixed,
                                      int64_t max_steps, Rng* rng) const = 0;
  // All valid points, when no more than `limit`; nullopt when there are more
  // or it takes too long. The result for a context without fixed knobs is
  // remembered for the last few contexts.
  virtual std::shared_ptr<const std::vector<Point>> ValidPoints(
      const Context& context, const FixedKnobs& fixed, size_t limit) const = 0;
  // Valid points that differ from `point` in one knob by any other level, plus
  // repairs: activity of dependent knobs is set from their defaults. Pairs of
  // knobs are changed together where constraints tie them (such as
  // tp * pp * dp = gpus), so that the neighbourhood is rarely empty.
  virtual std::vector<Point> Neighbours(const Point& point,
                                        const Context& context,
                                        const FixedKnobs& fixed, size_t limit,
                                        Rng* rng) const = 0;

  // ---- Growth ----

  // OK when every point that is valid in `old` stays representable in this
  // space (a living study may gain values and widen ranges); else
  // FAILED_PRECONDITION naming the field.
  virtual absl::Status CheckExtends(const SearchSpace& old) const = 0;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SEARCH_SPACE_H_
