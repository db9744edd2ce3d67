// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_walk.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace cubicml {
namespace {

// Values tried between two looks at the stop token: some milliseconds.
constexpr int64_t kStepsPerPoll = 4096;

size_t CountRows(const TableRows::Matches& matches) {
  size_t rows = 0;
  for (const TableRows::Range& range : matches) rows += range.end - range.begin;
  return rows;
}

}  // namespace

SpaceWalk::SpaceWalk(WalkOptions options)
    : options_(std::move(options)),
      model_(*options_.model),
      evaluation_(model_, *options_.view),
      checks_(model_.knobs.size()),
      places_(model_.knobs.size()),
      constraint_knobs_(model_.constraints.size(),
                        KnobSet(model_.knobs.size())),
      column_knobs_(model_.tables.size()),
      activity_knobs_(model_.parameters.size(), KnobSet(model_.knobs.size())),
      frames_(model_.knobs.size(), Frame(model_.knobs.size())),
      values_(model_.knobs.size(), kNone),
      levels_(model_.knobs.size(), kNoLevel),
      active_(model_.parameters.size()),
      matches_(model_.tables.size()) {
  CollectChecks();
  passes_ = PassesFreeConstraints();
}

void SpaceWalk::CollectChecks() {
  for (size_t c = 0; c < model_.constraints.size(); ++c) {
    const ConstraintModel& constraint = model_.constraints[c];
    if (options_.skipped != nullptr && (*options_.skipped)[c]) continue;
    for (const size_t knob : constraint.knobs) constraint_knobs_[c].Add(knob);
    if (!constraint.table.has_value()) {
      if (!constraint.knobs.empty()) {
        checks_[constraint.knobs.back()].push_back(c);
      }
      continue;
    }
    const size_t t = *constraint.table;
    const TableModel& table = model_.tables[t];
    KnobSet before(model_.knobs.size());
    for (size_t column = 0; column < table.columns.size(); ++column) {
      column_knobs_[t].push_back(before);
      if (column < table.context_columns) continue;
      const size_t knob = table.columns[column].knob;
      before.Add(knob);
      places_[knob].push_back({t, column});
    }
    matches_[t].resize(table.columns.size() + 1);
    matches_[t][table.context_columns] = options_.view->table_roots(t);
  }
  for (size_t p = 0; p < model_.parameters.size(); ++p) {
    const std::optional<size_t>& predicate = model_.parameters[p].active_if;
    if (!predicate.has_value()) continue;
    for (const size_t knob : model_.predicates[*predicate].knobs) {
      activity_knobs_[p].Add(knob);
    }
  }
}

// Those over the context alone, and tables that the context leaves empty.
bool SpaceWalk::PassesFreeConstraints() {
  for (size_t c = 0; c < model_.constraints.size(); ++c) {
    const ConstraintModel& constraint = model_.constraints[c];
    if (options_.skipped != nullptr && (*options_.skipped)[c]) continue;
    if (constraint.table.has_value()) {
      if (options_.view->table_roots(*constraint.table).empty()) return false;
    } else if (constraint.knobs.empty() &&
               !evaluation_.Satisfies(constraint, values_, &levels_)) {
      return false;
    }
  }
  return true;
}

size_t SpaceWalk::FindGuide(size_t knob, TablePlace* place) const {
  size_t fewest = 0;
  bool found = false;
  for (const TablePlace& candidate : places_[knob]) {
    const size_t rows = CountRows(matches_[candidate.table][candidate.column]);
    if (found && rows >= fewest) continue;
    fewest = rows;
    *place = candidate;
    found = true;
  }
  return found ? fewest : kNoTable;
}

bool SpaceWalk::OpenSingle(size_t knob, Frame* frame) {
  const size_t p = model_.knobs[knob].parameter;
  if (knob == model_.parameters[p].first_knob) {
    active_[p] = evaluation_.IsActive(p, values_, &levels_);
  }
  const double fixed = (*options_.fixed)[knob];
  if (active_[p] && std::isnan(fixed)) return false;
  frame->single = true;
  frame->single_value = active_[p] ? fixed : kNone;
  // A knob that is fixed cannot be without a value.
  frame->count = active_[p] || std::isnan(fixed) ? 1 : 0;
  return true;
}

void SpaceWalk::Open(size_t knob) {
  Frame& frame = frames_[knob];
  frame.next = 0;
  frame.single = false;
  frame.is_listed = false;
  frame.start = 0;
  frame.stride = 1;
  frame.table = kNoTable;
  frame.solved = false;
  frame.conflict.Clear();
  // Whether there is a value at all is due to what active_if names.
  frame.conflict.Merge(activity_knobs_[model_.knobs[knob].parameter]);
  if (OpenSingle(knob, &frame)) return;
  frame.count = model_.knobs[knob].levels.size();
  TablePlace guide{};
  // A given order speaks of levels, so those are tried one by one then.
  if (FindGuide(knob, &guide) != kNoTable &&
      (!options_.order || model_.knobs[knob].continuous)) {
    frame.table = guide.table;
    frame.column = guide.column;
    model_.tables[guide.table].rows.ListCodes(
        matches_[guide.table][guide.column], guide.column, &frame.codes);
    frame.count = frame.codes.size();
    // Values that are not offered are due to the columns before.
    frame.conflict.Merge(column_knobs_[guide.table][guide.column]);
  }
  SetOrder(knob, &frame);
}

void SpaceWalk::SetOrder(size_t knob, Frame* frame) {
  if (options_.order) {
    frame->is_listed = true;
    frame->listed.clear();
    options_.order(knob, frame->count, &frame->listed);
  } else if (options_.rng != nullptr && frame->count > 1) {
    // A random first value, and all others once each, without making a list.
    frame->start = options_.rng->Below(frame->count);
    do {
      frame->stride = 1 + options_.rng->Below(frame->count - 1);
    } while (std::gcd(frame->stride, frame->count) != 1);
  }
}

bool SpaceWalk::TryNext(size_t knob) {
  Frame& frame = frames_[knob];
  const size_t i = frame.next++;
  if (frame.single) {
    const int32_t level = FindLevel(model_.domain(knob), frame.single_value);
    return Assign(knob, frame.single_value, level);
  }
  const size_t at = frame.is_listed
                        ? frame.listed[i]
                        : (frame.start + i * frame.stride) % frame.count;
  if (at >= frame.count) return false;  // an order that lists what is not there
  if (frame.table == kNoTable) {
    return Assign(knob, model_.knobs[knob].levels[at],
                  static_cast<int32_t>(at));
  }
  const TableColumn& column = model_.tables[frame.table].columns[frame.column];
  const auto code = static_cast<size_t>(frame.codes[at]);
  const int32_t level = column.level_of_code[code];
  return Assign(knob, column.numbers[code], level >= 0 ? level : kOffLevel);
}

bool SpaceWalk::Assign(size_t knob, double value, int32_t level) {
  values_[knob] = value;
  levels_[knob] = level;
  KnobSet& conflict = frames_[knob].conflict;
  for (const auto& [table, place] : places_[knob]) {
    const TableColumn& column = model_.tables[table].columns[place];
    const int32_t code = level == kNoLevel ? TableRows::kAbsent
                         : level >= 0
                             ? column.code_of_level[static_cast<size_t>(level)]
                             : column.FindCode(value);
    if (!model_.tables[table].rows.Narrow(matches_[table][place], place, code,
                                          &matches_[table][place + 1])) {
      conflict.Merge(column_knobs_[table][place]);
      return false;
    }
  }
  for (const size_t c : checks_[knob]) {
    if (evaluation_.Satisfies(model_.constraints[c], values_, &levels_)) {
      continue;
    }
    conflict.Merge(constraint_knobs_[c]);
    return false;
  }
  return true;
}

std::ptrdiff_t SpaceWalk::BackJump(size_t knob) {
  Frame& frame = frames_[knob];
  // Beyond a point that was visited, nothing may be skipped.
  const auto knob_index = static_cast<std::ptrdiff_t>(knob);
  frame.conflict.Remove(knob);
  const std::ptrdiff_t target =
      frame.solved ? knob_index - 1 : frame.conflict.Highest();
  if (target < 0) return -1;
  Frame& earlier = frames_[static_cast<size_t>(target)];
  earlier.solved = earlier.solved || frame.solved;
  earlier.conflict.Merge(frame.conflict);
  return target;
}

SpaceWalk::End SpaceWalk::Run(int64_t* steps_left,
                              const std::function<bool(const Point&)>& visit) {
  if (!passes_) return End::kComplete;
  if (options_.stop.stop_requested()) return End::kCancelled;
  int64_t steps = 0;
  std::ptrdiff_t at = 0;
  Open(0);
  const size_t last = model_.knobs.size() - 1;
  while (at >= 0) {
    const auto knob = static_cast<size_t>(at);
    Frame& frame = frames_[knob];
    const size_t count = frame.is_listed ? frame.listed.size() : frame.count;
    if (frame.next >= count) {
      at = BackJump(knob);
      continue;
    }
    if (--*steps_left < 0) return End::kOutOfSteps;
    if (++steps % kStepsPerPoll == 0 && options_.stop.stop_requested()) {
      return End::kCancelled;
    }
    if (!TryNext(knob)) continue;
    if (knob < last) {
      Open(knob + 1);
      ++at;
      continue;
    }
    if (!visit(values_)) return End::kStopped;
    frame.solved = true;
  }
  return End::kComplete;
}

bool SpaceWalk::DrawKnob(size_t knob) {
  Frame& frame = frames_[knob];
  frame.conflict.Clear();
  if (OpenSingle(knob, &frame)) {
    if (frame.count == 0) return false;
    const int32_t level = FindLevel(model_.domain(knob), frame.single_value);
    return Assign(knob, frame.single_value, level);
  }
  TablePlace guide{};
  if (FindGuide(knob, &guide) == kNoTable) {
    const std::vector<double>& levels = model_.knobs[knob].levels;
    const size_t at = options_.rng->Below(levels.size());
    return Assign(knob, levels[at], static_cast<int32_t>(at));
  }
  const TableModel& table = model_.tables[guide.table];
  const int32_t code = table.rows.DrawCode(matches_[guide.table][guide.column],
                                           guide.column, options_.rng);
  if (code < 0) return false;
  const TableColumn& column = table.columns[guide.column];
  const int32_t level = column.level_of_code[static_cast<size_t>(code)];
  return Assign(knob, column.numbers[static_cast<size_t>(code)],
                level >= 0 ? level : kOffLevel);
}

bool SpaceWalk::Draw(int64_t* steps_left) {
  if (!passes_) return false;
  for (size_t knob = 0; knob < model_.knobs.size(); ++knob) {
    if (--*steps_left < 0 || !DrawKnob(knob)) return false;
  }
  return true;
}

}  // namespace cubicml
