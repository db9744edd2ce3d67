// SPDX-License-Identifier: Apache-2.0

#include "predictor/search_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "predictor/space_borders.h"
#include "predictor/space_emptiness.h"
#include "predictor/space_evaluation.h"
#include "predictor/space_model.h"
#include "predictor/space_neighbours.h"
#include "predictor/space_parser.h"
#include "predictor/space_view.h"
#include "predictor/space_walk.h"

namespace cubicml {
namespace {

// Sample lists the valid points of a context first if it can within these.
constexpr size_t kListedPoints = 65536;
constexpr size_t kListedValues = 2000000;
constexpr int64_t kListSteps = 400000;
// A product of so many levels is listed only if its constraints are so tight
// that a short walk sees the end.
constexpr double kLargeProduct = 4e6;
constexpr int64_t kShortListSteps = 40000;
constexpr int kDraws = 128;
constexpr int64_t kFirstRestart = 1000;

// ValidPoints takes too long beyond this.
constexpr int64_t kStepsPerList = 20000000;
constexpr int64_t kStepsPerListedPoint = 20;

bool IsFree(const FixedKnobs& fixed) {
  return std::all_of(fixed.begin(), fixed.end(),
                     [](double value) { return std::isnan(value); });
}

bool IsAsFixed(const Point& point, const FixedKnobs& fixed) {
  for (size_t k = 0; k < point.size(); ++k) {
    if (!std::isnan(fixed[k]) && fixed[k] != point[k]) return false;
  }
  return true;
}

// Whether the points that are as fixed are among those of a space where nothing
// is: a continuous knob may be fixed between its levels.
bool AreOnLevels(const SpaceModel& model, const FixedKnobs& fixed) {
  for (size_t k = 0; k < fixed.size(); ++k) {
    if (!std::isnan(fixed[k]) && model.domain(k).FindLevel(fixed[k]) < 0) {
      return false;
    }
  }
  return true;
}

// Null when more than `limit`.
std::shared_ptr<const std::vector<Point>> FilterPoints(
    const std::vector<Point>& points, const FixedKnobs& fixed, size_t limit) {
  auto kept = std::make_shared<std::vector<Point>>();
  for (const Point& point : points) {
    if (!IsAsFixed(point, fixed)) continue;
    if (kept->size() == limit) return nullptr;
    kept->push_back(point);
  }
  return kept;
}

struct Listing {
  SpaceWalk::End end = SpaceWalk::End::kComplete;
  int64_t steps = 0;
  std::shared_ptr<std::vector<Point>> points;
};

// Stops after one more than `limit`.
Listing ListPoints(const WalkOptions& options, size_t limit,
                   int64_t max_steps) {
  Listing listing;
  listing.points = std::make_shared<std::vector<Point>>();
  int64_t steps_left = max_steps;
  SpaceWalk walk(options);
  listing.end = walk.Run(&steps_left, [&](const Point& point) {
    if (listing.points->size() == limit) return false;
    listing.points->push_back(point);
    return true;
  });
  listing.steps = max_steps - steps_left;
  return listing;
}

// At most `limit` points, if there are no more and listing them takes no more
// than `max_steps`; else null. The view remembers what was found out: the walk
// must be over all that is valid in it.
std::shared_ptr<const std::vector<Point>> ListAll(const WalkOptions& options,
                                                  size_t limit,
                                                  int64_t max_steps,
                                                  SpaceView* view) {
  if (auto known = view->GetValidPoints(max_steps)) {
    return known->size() <= limit ? known : nullptr;
  }
  if (view->IsKnownToExceed(limit, max_steps)) return nullptr;
  const Listing listing = ListPoints(options, limit, max_steps);
  switch (listing.end) {
    case SpaceWalk::End::kComplete:
      view->SetValidPoints(listing.points, listing.steps);
      return listing.points;
    case SpaceWalk::End::kStopped:
      view->SetMorePointsThan(limit);
      break;
    case SpaceWalk::End::kOutOfSteps:
      view->SetMoreStepsThan(max_steps);
      break;
    case SpaceWalk::End::kCancelled:
      break;
  }
  return nullptr;
}

int64_t ChooseListSteps(const SpaceModel& model) {
  if (!model.tables.empty()) return kListSteps;
  double product = 1.0;
  for (const Knob& knob : model.knobs) {
    product *= static_cast<double>(knob.levels.size());
  }
  return product > kLargeProduct ? kShortListSteps : kListSteps;
}

// One of those that are as fixed, each being as likely.
std::optional<Point> PickPoint(const std::vector<Point>& points,
                               const FixedKnobs& fixed, Rng* rng) {
  if (points.empty()) return std::nullopt;
  if (IsFree(fixed)) return points[rng->Below(points.size())];
  const Point* picked = nullptr;
  uint64_t matching = 0;
  for (const Point& point : points) {
    if (!IsAsFixed(point, fixed)) continue;
    if (rng->Below(++matching) == 0) picked = &point;
  }
  if (picked == nullptr) return std::nullopt;
  return *picked;
}

}  // namespace

SearchSpace::SearchSpace(std::unique_ptr<const SpaceModel> model)
    : model_(std::move(model)), views_(std::make_unique<SpaceViews>(*model_)) {}

SearchSpace::~SearchSpace() = default;

absl::StatusOr<std::shared_ptr<const SearchSpace>> SearchSpace::Parse(
    const v1::Study& study) {
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<SpaceModel> model,
                           ParseSpace(study));
  if (const std::optional<Context> context = MakeDefaultContext(*model)) {
    CUBICML_RETURN_IF_ERROR(CheckBaselineIsValid(*model, *context));
  }
  return std::shared_ptr<const SearchSpace>(new SearchSpace(std::move(model)));
}

const std::vector<Knob>& SearchSpace::knobs() const { return model_->knobs; }

const std::vector<v1::ContextField>& SearchSpace::context_fields() const {
  return model_->context_fields;
}

absl::StatusOr<Context> SearchSpace::ParseContext(
    const ValueMap& context) const {
  return ParseContextFields(*model_, context);
}

absl::StatusOr<Point> SearchSpace::ParsePoint(const ValueMap& parameters,
                                              const Context& context) const {
  return ParseValidPoint(*model_, parameters, context);
}

absl::StatusOr<Point> SearchSpace::ParseStoredPoint(
    const ValueMap& parameters, const Context& context) const {
  CUBICML_ASSIGN_OR_RETURN(Point point,
                           ParseKnobs(*model_, parameters, "parameters"));
  SpaceEvaluation evaluation(*model_, context);
  for (size_t p = 0; p < model_->parameters.size(); ++p) {
    const ParameterModel& parameter = model_->parameters[p];
    const bool given = !std::isnan(point[parameter.first_knob]);
    if (given || !evaluation.IsActive(p, point, nullptr)) continue;
    std::copy(
        parameter.defaults.begin(), parameter.defaults.end(),
        point.begin() + static_cast<std::ptrdiff_t>(parameter.first_knob));
  }
  return point;
}

absl::StatusOr<FixedKnobs> SearchSpace::ParseFixed(
    const ValueMap& parameters) const {
  return ParseKnobs(*model_, parameters, "fixed_parameters");
}

FixedKnobs SearchSpace::Free() const {
  return FixedKnobs(model_->knobs.size(), kNone);
}

ValueMap SearchSpace::FormatPoint(const Point& point) const {
  return FormatKnobs(*model_, point);
}

ValueMap SearchSpace::FormatContext(const Context& context) const {
  return FormatContextFields(*model_, context);
}

std::string SearchSpace::PointKey(const Point& point) const {
  std::string key;
  for (size_t k = 0; k < point.size(); ++k) {
    if (k > 0) key.push_back(',');
    if (std::isnan(point[k])) {
      key.push_back('~');
    } else {
      model_->domain(k).AppendKey(point[k], &key);
    }
  }
  return key;
}

absl::StatusOr<Point> SearchSpace::Baseline(const Context& context,
                                            const FixedKnobs& fixed) const {
  SpaceEvaluation evaluation(*model_, context);
  Point point = Free();
  evaluation.Complete(&fixed, &point);
  for (size_t k = 0; k < point.size(); ++k) {
    if (!std::isnan(fixed[k]) && std::isnan(point[k])) {
      return PreconditionError(
          absl::StrCat("fixed_parameters.", model_->knobs[k].name),
          "is not active in the baseline");
    }
  }
  if (const auto broken = evaluation.FindBroken(point)) {
    const ConstraintModel& constraint = model_->constraints[*broken];
    return PreconditionError(
        constraint.path,
        absl::StrCat(evaluation.DescribeBroken(constraint),
                     " for the baseline (",
                     DescribeKnobs(*model_, constraint.knobs, point), ")"));
  }
  return point;
}

absl::Status SearchSpace::CheckValid(const Point& point, const Context& context,
                                     const FixedKnobs& fixed) const {
  return CheckValidPoint(*model_, point, context, fixed);
}

bool SearchSpace::Enumerate(const Context& context, const FixedKnobs& fixed,
                            int64_t max_steps,
                            const std::function<bool(const Point&)>& visit,
                            const std::stop_token& stop) const {
  const std::shared_ptr<SpaceView> view = views_->Get(context);
  SpaceWalk walk({.model = model_.get(),
                  .view = view.get(),
                  .fixed = &fixed,
                  .order = nullptr,
                  .rng = nullptr,
                  .skipped = nullptr,
                  .stop = stop});
  return walk.Run(&max_steps, visit) == SpaceWalk::End::kComplete;
}

std::optional<Point> SearchSpace::SampleInOrder(
    const Context& context, const FixedKnobs& fixed, int64_t max_steps,
    const LevelOrder& order, const std::stop_token& stop) const {
  const std::shared_ptr<SpaceView> view = views_->Get(context);
  SpaceWalk walk({.model = model_.get(),
                  .view = view.get(),
                  .fixed = &fixed,
                  .order = order,
                  .rng = nullptr,
                  .skipped = nullptr,
                  .stop = stop});
  std::optional<Point> found;
  walk.Run(&max_steps, [&](const Point& point) {
    found = point;
    return false;
  });
  return found;
}

std::optional<Point> SearchSpace::Sample(const Context& context,
                                         const FixedKnobs& fixed,
                                         int64_t max_steps, Rng* rng,
                                         const std::stop_token& stop) const {
  const std::shared_ptr<SpaceView> view = views_->Get(context);
  const FixedKnobs free = Free();
  const size_t limit =
      std::min(kListedPoints, kListedValues / model_->knobs.size());
  const std::shared_ptr<const std::vector<Point>> points =
      ListAll({.model = model_.get(),
               .view = view.get(),
               .fixed = &free,
               .order = nullptr,
               .rng = nullptr,
               .skipped = nullptr,
               .stop = stop},
              limit, ChooseListSteps(*model_), view.get());
  // A fixed value between the levels is in no list.
  if (points != nullptr) {
    std::optional<Point> picked = PickPoint(*points, fixed, rng);
    if (picked.has_value() || IsFree(fixed)) return picked;
  }
  const WalkOptions random{.model = model_.get(),
                           .view = view.get(),
                           .fixed = &fixed,
                           .order = nullptr,
                           .rng = rng,
                           .skipped = nullptr,
                           .stop = stop};
  SpaceWalk draws(random);
  for (int i = 0; i < kDraws && max_steps > 0; ++i) {
    if (stop.stop_requested()) return std::nullopt;
    if (draws.Draw(&max_steps)) return draws.point();
  }
  std::optional<Point> found;
  // Each restart gets more steps than all before it, so a search that must be
  // long is not cut short for ever.
  for (int64_t restart = kFirstRestart; max_steps > 0; restart *= 2) {
    int64_t steps = std::min(restart, max_steps);
    max_steps -= steps;
    SpaceWalk walk(random);
    const SpaceWalk::End end = walk.Run(&steps, [&](const Point& point) {
      found = point;
      return false;
    });
    if (end != SpaceWalk::End::kOutOfSteps) break;
  }
  return found;
}

std::shared_ptr<const std::vector<Point>> SearchSpace::ValidPoints(
    const Context& context, const FixedKnobs& fixed, size_t limit,
    const std::stop_token& stop) const {
  const std::shared_ptr<SpaceView> view = views_->Get(context);
  limit = std::min(limit, SpaceView::MaxListedPoints(model_->knobs.size()));
  const auto steps =
      static_cast<int64_t>(std::min<size_t>(limit, size_t{1} << 40)) *
          kStepsPerListedPoint +
      kStepsPerList;
  const WalkOptions options{.model = model_.get(),
                            .view = view.get(),
                            .fixed = &fixed,
                            .order = nullptr,
                            .rng = nullptr,
                            .skipped = nullptr,
                            .stop = stop};
  if (IsFree(fixed)) return ListAll(options, limit, steps, view.get());
  const auto free = view->GetValidPoints(steps);
  if (free != nullptr && AreOnLevels(*model_, fixed)) {
    return FilterPoints(*free, fixed, limit);
  }
  Listing listing = ListPoints(options, limit, steps);
  if (listing.end != SpaceWalk::End::kComplete) return nullptr;
  return listing.points;
}

std::vector<Point> SearchSpace::Neighbours(const Point& point,
                                           const Context& context,
                                           const FixedKnobs& fixed,
                                           size_t limit, Rng* rng,
                                           const std::stop_token& stop) const {
  const std::shared_ptr<SpaceView> view = views_->Get(context);
  return FindNeighbours(*model_, *view, point, fixed, limit, rng, stop);
}

absl::Status SearchSpace::CheckExtends(const SearchSpace& old) const {
  return CheckSpaceExtends(*model_, *old.model_);
}

}  // namespace cubicml
