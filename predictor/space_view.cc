// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_view.h"

#include <algorithm>
#include <utility>

namespace cubicml {
namespace {

size_t CountListBytes(size_t points, size_t knobs) {
  return points * (knobs * sizeof(double) + sizeof(Point) + 16);
}

}  // namespace

size_t SpaceView::MaxListedPoints(size_t knobs) {
  return kMaxListBytes / CountListBytes(1, knobs);
}

SpaceView::SpaceView(const SpaceModel& model, Context context)
    : context_(std::move(context)) {
  size_t total = 0;
  verdicts_.resize(model.predicates.size());
  for (size_t p = 0; p < model.predicates.size(); ++p) {
    const size_t size = model.predicates[p].combinations;
    if (size == 0 || size > kMaxRemembered ||
        total + size > kMaxRememberedTotal) {
      continue;
    }
    total += size;
    verdicts_[p] = std::make_unique<std::atomic<uint8_t>[]>(size);
  }
  for (const TableModel& table : model.tables) {
    table_roots_.push_back(table.NarrowByContext(context_));
    base_bytes_ += table_roots_.back().size() * sizeof(TableRows::Range);
  }
  base_bytes_ += sizeof(SpaceView) + total;
}

size_t SpaceView::CountBytes() const {
  MutexLock lock(&mu_);
  if (valid_points_ == nullptr || valid_points_->empty()) return base_bytes_;
  return base_bytes_ +
         CountListBytes(valid_points_->size(), valid_points_->front().size());
}

std::shared_ptr<const std::vector<Point>> SpaceView::GetValidPoints(
    int64_t max_steps) const {
  MutexLock lock(&mu_);
  return list_steps_ <= max_steps ? valid_points_ : nullptr;
}

void SpaceView::SetValidPoints(std::shared_ptr<const std::vector<Point>> points,
                               int64_t steps) {
  MutexLock lock(&mu_);
  valid_points_ = std::move(points);
  list_steps_ = steps;
}

bool SpaceView::IsKnownToExceed(size_t points, int64_t steps) const {
  MutexLock lock(&mu_);
  return (more_points_than_.has_value() && points <= *more_points_than_) ||
         steps <= more_steps_than_;
}

void SpaceView::SetMorePointsThan(size_t points) {
  MutexLock lock(&mu_);
  more_points_than_ = std::max(more_points_than_.value_or(points), points);
}

void SpaceView::SetMoreStepsThan(int64_t steps) {
  MutexLock lock(&mu_);
  more_steps_than_ = std::max(more_steps_than_, steps);
}

std::shared_ptr<SpaceView> SpaceViews::Get(const Context& context) {
  {
    MutexLock lock(&mu_);
    for (size_t i = views_.size(); i-- > 0;) {
      if (views_[i]->context().key != context.key) continue;
      std::rotate(views_.begin() + static_cast<std::ptrdiff_t>(i),
                  views_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  views_.end());
      return views_.back();
    }
  }
  // Made outside of the lock: it may take a millisecond. Two threads that make
  // the same one lose only the memory of one.
  auto view = std::make_shared<SpaceView>(model_, context);
  MutexLock lock(&mu_);
  views_.push_back(view);
  DropOldest();
  return view;
}

void SpaceViews::DropOldest() {
  size_t bytes = 0;
  for (const auto& view : views_) bytes += view->CountBytes();
  while (views_.size() > kMaxKept ||
         (views_.size() > kMinKept && bytes > kMaxBytes)) {
    bytes -= std::min(bytes, views_.front()->CountBytes());
    views_.erase(views_.begin());
  }
}

}  // namespace cubicml
