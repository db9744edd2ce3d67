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
#include <stop_token>
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
  // Equal contexts have equal keys, and only they: a canonical encoding, valid
  // UTF-8.
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
  // A category's values as text, one for each level; empty for other kinds.
  std::vector<std::string> labels;
  bool continuous = false;
  bool conditional = false;  // has active_if
};

// Knobs that the caller has decided: one entry for each knob, NaN where free.
// A fixed knob is active in every point, with that value.
using FixedKnobs = std::vector<double>;

// Up to this many valid points are better listed than sampled.
inline constexpr size_t kMaxListedPoints = 50'000;

struct SpaceModel;
class SpaceViews;

// Immutable and thread-safe. Remembers, within bounds, what it found out about
// the last few contexts. Contexts, points and fixed knobs that are given to a
// method must be of this space (made by it, or as long as its knobs).
class SearchSpace final {
 public:
  // INVALID_ARGUMENT with the path of the field, e.g.
  // "parameters[2].integer.max", in FieldError form; also when every context
  // field may be left out and then the constraints leave nothing, or the
  // baseline breaks a constraint. Looks at parameters, context and constraints
  // only. Limits: 256 parameters, 1,000 knobs, 256 context fields, 10,000
  // values of a domain, integers of 53 bits, 256 constraints, expressions of
  // 4 KiB, tables of 100,000 rows and 2,000,000 values.
  static absl::StatusOr<std::shared_ptr<const SearchSpace>> Parse(
      const v1::Study& study);

  ~SearchSpace();
  SearchSpace(const SearchSpace&) = delete;
  SearchSpace& operator=(const SearchSpace&) = delete;

  const std::vector<Knob>& knobs() const;
  const std::vector<v1::ContextField>& context_fields() const;

  // ---- Borders ----

  // Fills in defaults. INVALID_ARGUMENT naming "context.FIELD": unknown,
  // missing, or of the wrong type.
  absl::StatusOr<Context> ParseContext(const ValueMap& context) const;
  // A complete, valid configuration. INVALID_ARGUMENT naming
  // "parameters.NAME": unknown, missing, wrong type, not finite, outside the
  // range, not on the grid, given although inactive; or "constraints[i]" with
  // its text. An integer is accepted where a number is expected when exact.
  absl::StatusOr<Point> ParsePoint(const ValueMap& parameters,
                                   const Context& context) const;
  // The configuration of a trial that was accepted by an earlier form of a
  // living study: parameters that it lacks take their defaults (as far as they
  // are active), and neither constraints nor activity are checked, since what
  // has run stays a measurement. INVALID_ARGUMENT naming "parameters.NAME"
  // when this space cannot represent a value, which CheckExtends rules out.
  // Since the defaults speak for what older trials lack, one that is changed
  // later changes what those are read as.
  absl::StatusOr<Point> ParseStoredPoint(const ValueMap& parameters,
                                         const Context& context) const;
  // Some of the parameters. INVALID_ARGUMENT naming "fixed_parameters.NAME".
  absl::StatusOr<FixedKnobs> ParseFixed(const ValueMap& parameters) const;
  // Nothing fixed.
  FixedKnobs Free() const;
  // Typed values of the active knobs.
  ValueMap FormatPoint(const Point& point) const;
  ValueMap FormatContext(const Context& context) const;
  // Equal configurations have equal keys, and only they. Printable UTF-8 that
  // stays the same when the study gains values.
  std::string PointKey(const Point& point) const;

  // ---- Validity ----

  // The defaults, with inactive knobs NaN, and fixed knobs as given.
  // FAILED_PRECONDITION naming the constraint when they break one in this
  // context, or the fixed knob that is not active then.
  absl::StatusOr<Point> Baseline(const Context& context,
                                 const FixedKnobs& fixed) const;
  // OK, or INVALID_ARGUMENT naming the first constraint that is broken, the
  // knob whose activity or value is wrong, or the fixed knob that is not as
  // fixed.
  absl::Status CheckValid(const Point& point, const Context& context,
                          const FixedKnobs& fixed) const;

  // ---- Walking the valid configurations ----
  //
  // Valid points may be very rare, so a walk can take long without meeting one.
  // Each of these ends soon after `stop` is requested, as if out of steps.

  // Visits valid points in lexicographic order, pruning by each constraint as
  // soon as its knobs are set, until the visitor returns false. Continuous
  // knobs take their 1,025 levels, or the values of the table constraint that
  // they are a column of. Returns true when all were visited, false when the
  // visitor stopped or after `max_steps` partial assignments.
  bool Enumerate(const Context& context, const FixedKnobs& fixed,
                 int64_t max_steps,
                 const std::function<bool(const Point&)>& visit,
                 const std::stop_token& stop = {}) const;
  // A random valid point, over the levels; nullopt when none was found within
  // `max_steps` partial assignments. Uniform over the valid points where few
  // enough to list (65,536), or where drawing each knob by itself soon gives a
  // valid point and no knob is conditional; else by randomised depth-first
  // search with restarts, which favours points whose early knobs leave few
  // completions.
  std::optional<Point> Sample(const Context& context, const FixedKnobs& fixed,
                              int64_t max_steps, Rng* rng,
                              const std::stop_token& stop = {}) const;
  // The first valid point that depth-first search finds when the values of each
  // knob are tried in the order that `order` gives: it is told the knob and how
  // many values that has, and lists their indices (of Knob.levels, as a rule),
  // not necessarily all. So a policy that draws knob by knob has what the
  // constraints forbid masked. nullopt as Sample.
  using LevelOrder = std::function<void(size_t knob, size_t levels,
                                        std::vector<size_t>* order)>;
  std::optional<Point> SampleInOrder(const Context& context,
                                     const FixedKnobs& fixed, int64_t max_steps,
                                     const LevelOrder& order,
                                     const std::stop_token& stop = {}) const;
  // All valid points in lexicographic order, when no more than `limit`;
  // nullptr when there are more, they take more than 32 MiB, or it takes too
  // long. The result for a context without fixed knobs is remembered for the
  // last contexts.
  std::shared_ptr<const std::vector<Point>> ValidPoints(
      const Context& context, const FixedKnobs& fixed, size_t limit,
      const std::stop_token& stop = {}) const;
  // At most `limit` different valid points near `point`, in random order of
  // nearness: those that differ from it in one knob by any other level, plus
  // repairs (activity of dependent knobs is set from their defaults); then
  // those in which a second knob of a constraint that the first change broke
  // is changed too (tp * pp * dp = gpus); where that leaves few, those in
  // which the knobs of one constraint change together (rows of a table).
  std::vector<Point> Neighbours(const Point& point, const Context& context,
                                const FixedKnobs& fixed, size_t limit, Rng* rng,
                                const std::stop_token& stop = {}) const;

  // ---- Growth ----

  // OK when every point that is valid in `old` stays representable in this
  // space (a living study may gain values, widen ranges, and gain parameters
  // that have a default and context fields that may be left out); else
  // FAILED_PRECONDITION naming the field.
  absl::Status CheckExtends(const SearchSpace& old) const;

 private:
  explicit SearchSpace(std::unique_ptr<const SpaceModel> model);

  const std::unique_ptr<const SpaceModel> model_;
  // Synchronises itself.
  const std::unique_ptr<SpaceViews> views_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SEARCH_SPACE_H_
