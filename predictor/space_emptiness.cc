// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_emptiness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_error.h"
#include "base/rng.h"
#include "predictor/space_evaluation.h"
#include "predictor/space_view.h"
#include "predictor/space_walk.h"
#include "predictor/value_text.h"

namespace cubicml {
namespace {

// Values tried for the first answer, and for all that ask which constraints are
// to blame: a second each at worst.
constexpr int64_t kSearchSteps = 300000;
constexpr int64_t kBlameSteps = 300000;
constexpr size_t kKnobsInMessage = 12;

struct Finding {
  SpaceWalk::End end = SpaceWalk::End::kComplete;
  std::optional<Point> point;
};

Finding FindAnyPoint(const SpaceModel& model, const SpaceView& view,
                     const std::vector<bool>& skipped, int64_t* steps) {
  const FixedKnobs free(model.knobs.size(),
                        std::numeric_limits<double>::quiet_NaN());
  Rng rng(1);  // any order will do; this one is the same every time
  SpaceWalk walk({.model = &model,
                  .view = &view,
                  .fixed = &free,
                  .order = nullptr,
                  .rng = &rng,
                  .skipped = &skipped,
                  .stop = {}});
  Finding finding;
  finding.end = walk.Run(steps, [&](const Point& point) {
    finding.point = point;
    return false;
  });
  return finding;
}

// Leaves out one constraint after the other for as long as nothing is valid.
std::vector<size_t> FindCulprits(const SpaceModel& model,
                                 const SpaceView& view) {
  std::vector<bool> skipped(model.constraints.size(), false);
  std::vector<size_t> culprits;
  int64_t steps = kBlameSteps;
  for (size_t c = 0; c < skipped.size(); ++c) {
    skipped[c] = true;
    const Finding finding = FindAnyPoint(model, view, skipped, &steps);
    if (finding.end == SpaceWalk::End::kComplete) continue;
    skipped[c] = false;
    culprits.push_back(c);
  }
  return culprits;
}

absl::Status BlameConstraints(const SpaceModel& model, const SpaceView& view) {
  const std::vector<size_t> culprits = FindCulprits(model, view);
  const std::string names =
      absl::StrJoin(culprits, " and ", [&](std::string* out, size_t c) {
        const ConstraintModel& constraint = model.constraints[c];
        absl::StrAppend(out, constraint.path, " (",
                        QuoteForMessage(constraint.text), ")");
      });
  return FieldError(
      model.constraints[culprits.front()].path,
      culprits.size() == 1
          ? absl::StrCat("no configuration of the domains satisfies ", names)
          : absl::StrCat("no configuration of the domains satisfies ", names,
                         " together"));
}

}  // namespace

std::string DescribeKnobs(const SpaceModel& model,
                          const std::vector<size_t>& knobs,
                          const Point& point) {
  std::vector<std::string> parts;
  for (const size_t knob : knobs) {
    if (parts.size() == kKnobsInMessage) {
      parts.emplace_back("...");
      break;
    }
    const Knob& shown = model.knobs[knob];
    const double value = point[knob];
    parts.push_back(absl::StrCat(shown.name, " = ",
                                 std::isnan(value) ? std::string("inactive")
                                 : shown.kind == KnobKind::kCategory
                                     ? shown.labels[static_cast<size_t>(value)]
                                     : FormatDouble(value)));
  }
  return absl::StrJoin(parts, ", ");
}

absl::Status CheckBaselineIsValid(const SpaceModel& model,
                                  const Context& context) {
  SpaceEvaluation evaluation(model, context);
  Point baseline(model.knobs.size(), std::numeric_limits<double>::quiet_NaN());
  evaluation.Complete(nullptr, &baseline);
  const std::optional<size_t> broken = evaluation.FindBroken(baseline);
  if (!broken.has_value()) return absl::OkStatus();
  const ConstraintModel& constraint = model.constraints[*broken];
  const std::string why =
      absl::StrCat(constraint.table.has_value() ? "the baseline " : "",
                   evaluation.DescribeBroken(constraint), " for the defaults (",
                   DescribeKnobs(model, constraint.knobs, baseline), ")");

  const SpaceView view(model, context);
  int64_t steps = kSearchSteps;
  const Finding finding = FindAnyPoint(
      model, view, std::vector<bool>(model.constraints.size(), false), &steps);
  if (finding.point.has_value()) {
    return FieldError(
        constraint.path,
        absl::StrCat(why,
                     "; set default_value of the parameters to a "
                     "configuration that is valid, such as ",
                     DescribeKnobs(model, constraint.knobs, *finding.point)));
  }
  if (finding.end == SpaceWalk::End::kComplete) {
    return BlameConstraints(model, view);
  }
  return FieldError(
      constraint.path,
      absl::StrCat(why, ", and a search of ", kSearchSteps,
                   " steps found no valid configuration, though there may be "
                   "one; give one as the defaults"));
}

}  // namespace cubicml
