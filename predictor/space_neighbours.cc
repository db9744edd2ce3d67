// SPDX-License-Identifier: Apache-2.0

#include "predictor/space_neighbours.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "predictor/space_evaluation.h"
#include "predictor/space_walk.h"

namespace cubicml {
namespace {

// Of single knobs; more are drawn at random.
constexpr size_t kMaxMoves = 50000;
constexpr size_t kMaxBrokenMoves = 2000;
constexpr int kMaxPairTries = 6000;
// With fewer neighbours than this, knobs of one constraint change together.
constexpr size_t kFew = 8;
constexpr int64_t kGroupSteps = 20000;
constexpr int kRunsPerGroup = 8;
constexpr int kPointsPerRun = 4;

struct Move {
  size_t knob = 0;
  double value = 0.0;
};

class NeighbourSearch {
 public:
  NeighbourSearch(const SpaceModel& model, const SpaceView& view, Point point,
                  const FixedKnobs& fixed, size_t limit,
                  const std::stop_token& stop)
      : model_(model),
        view_(view),
        fixed_(fixed),
        limit_(limit),
        stop_(stop),
        evaluation_(model, view),
        start_(std::move(point)),
        steers_(model.knobs.size(), false),
        constraints_of_(model.knobs.size()) {
    for (const ParameterModel& parameter : model.parameters) {
      if (!parameter.active_if.has_value()) continue;
      for (const size_t knob : model.predicates[*parameter.active_if].knobs) {
        steers_[knob] = true;
      }
    }
    for (size_t c = 0; c < model.constraints.size(); ++c) {
      for (const size_t knob : model.constraints[c].knobs) {
        constraints_of_[knob].push_back(c);
      }
    }
    start_levels_ = FindLevels(model, start_);
    Point repaired = start_;
    evaluation_.Complete(&fixed, &repaired);
    start_is_valid_ = SamePoint(repaired, start_) &&
                      !evaluation_.FindBroken(start_).has_value();
    seen_.insert(MakeKey(start_));
  }

  std::vector<Point> Find(Rng* rng) {
    ChangeOneKnob(rng);
    ChangeTwoKnobs(rng);
    if (found_.size() < std::min(limit_, kFew)) ChangeGroups(rng);
    return std::move(found_);
  }

 private:
  struct BrokenMove {
    Move move;
    size_t constraint;
  };

  static std::string MakeKey(const Point& point) {
    std::string key(point.size() * sizeof(double), '\0');
    for (size_t k = 0; k < point.size(); ++k) {
      const double value = std::isnan(point[k]) ? kNone : point[k];
      std::memcpy(key.data() + k * sizeof(double), &value, sizeof(double));
    }
    return key;
  }

  static bool SamePoint(const Point& a, const Point& b) {
    return MakeKey(a) == MakeKey(b);
  }

  bool IsMovable(size_t knob, const Point& point) const {
    return std::isnan(fixed_[knob]) && !std::isnan(point[knob]);
  }

  // The values that a walk would give to the knob.
  const std::vector<double>& Values(size_t knob) const {
    const Knob& shown = model_.knobs[knob];
    if (!shown.continuous) return shown.levels;
    for (const size_t c : constraints_of_[knob]) {
      if (!model_.constraints[c].table.has_value()) continue;
      for (const TableColumn& column :
           model_.tables[*model_.constraints[c].table].columns) {
        if (!column.variable.is_context && column.knob == knob) {
          return column.numbers;
        }
      }
    }
    return shown.levels;
  }

  // Makes the moves and repairs activity. `broken` is a constraint that fails;
  // none of them does when a fixed knob lost its value.
  struct Trial {
    bool valid = false;
    std::optional<size_t> broken;
  };
  Trial Try(const std::vector<Move>& moves) {
    candidate_ = start_;
    levels_ = start_levels_;
    bool steered = false;
    for (const Move& move : moves) {
      candidate_[move.knob] = move.value;
      levels_[move.knob] = FindLevel(model_.domain(move.knob), move.value);
      steered = steered || steers_[move.knob];
    }
    if (steered && !Repair()) return {};
    if (steered || !start_is_valid_) {
      for (size_t c = 0; c < model_.constraints.size(); ++c) {
        if (!Satisfies(c)) return {.valid = false, .broken = c};
      }
    } else {
      for (const Move& move : moves) {
        for (const size_t c : constraints_of_[move.knob]) {
          if (!Satisfies(c)) return {.valid = false, .broken = c};
        }
      }
    }
    return {.valid = true, .broken = std::nullopt};
  }

  bool Satisfies(size_t constraint) {
    return evaluation_.Satisfies(model_.constraints[constraint], candidate_,
                                 &levels_);
  }

  // False when a fixed knob is not active any more.
  bool Repair() {
    for (size_t p = 0; p < model_.parameters.size(); ++p) {
      const ParameterModel& parameter = model_.parameters[p];
      if (!parameter.active_if.has_value()) continue;
      const bool active = evaluation_.IsActive(p, candidate_, &levels_);
      for (size_t e = 0; e < parameter.knob_count; ++e) {
        const size_t knob = parameter.first_knob + e;
        if (!active && !std::isnan(fixed_[knob])) return false;
        if (active == !std::isnan(candidate_[knob])) continue;
        candidate_[knob] = !active                     ? kNone
                           : !std::isnan(fixed_[knob]) ? fixed_[knob]
                                                       : parameter.defaults[e];
        levels_[knob] = FindLevel(parameter.domain, candidate_[knob]);
      }
    }
    return true;
  }

  // False when there are enough.
  bool Keep(const Point& point) {
    if (found_.size() < limit_ && seen_.insert(MakeKey(point)).second) {
      found_.push_back(point);
    }
    return found_.size() < limit_;
  }

  std::vector<Move> ListMoves(Rng* rng) const {
    std::vector<size_t> movable;
    size_t total = 0;
    for (size_t k = 0; k < start_.size(); ++k) {
      if (!IsMovable(k, start_)) continue;
      movable.push_back(k);
      total += Values(k).size();
    }
    std::vector<Move> moves;
    if (total > kMaxMoves) {
      for (size_t i = 0; i < kMaxMoves; ++i) {
        const size_t knob = movable[rng->Below(movable.size())];
        const std::vector<double>& values = Values(knob);
        moves.push_back({knob, values[rng->Below(values.size())]});
      }
      return moves;
    }
    for (const size_t knob : movable) {
      for (const double value : Values(knob)) moves.push_back({knob, value});
    }
    rng->Shuffle(&moves);
    return moves;
  }

  void ChangeOneKnob(Rng* rng) {
    for (const Move& move : ListMoves(rng)) {
      if (move.value == start_[move.knob]) continue;
      if (stop_.stop_requested()) return;
      const Trial trial = Try({move});
      if (trial.valid) {
        if (!Keep(candidate_)) return;
      } else if (trial.broken.has_value() && broken_.size() < kMaxBrokenMoves) {
        broken_.push_back({move, *trial.broken});
      }
    }
  }

  void ChangeTwoKnobs(Rng* rng) {
    if (found_.size() >= limit_) return;
    int tries = kMaxPairTries;
    for (const BrokenMove& first : broken_) {
      std::vector<Move> seconds;
      for (const size_t knob : model_.constraints[first.constraint].knobs) {
        if (knob == first.move.knob || !IsMovable(knob, start_)) continue;
        for (const double value : Values(knob)) {
          if (value != start_[knob]) seconds.push_back({knob, value});
        }
      }
      rng->Shuffle(&seconds);
      for (const Move& second : seconds) {
        if (--tries < 0 || stop_.stop_requested()) return;
        if (Try({first.move, second}).valid && !Keep(candidate_)) return;
      }
    }
  }

  // All knobs of one constraint at once, the others as they are.
  void ChangeGroups(Rng* rng) {
    std::vector<size_t> order;
    for (size_t c = 0; c < model_.constraints.size(); ++c) {
      if (model_.constraints[c].knobs.size() > 1) order.push_back(c);
    }
    rng->Shuffle(&order);
    for (const size_t c : order) {
      FixedKnobs held = fixed_;
      for (size_t k = 0; k < held.size(); ++k) {
        // What is conditional may have to change with the group.
        if (!model_.knobs[k].conditional && std::isnan(held[k])) {
          held[k] = start_[k];
        }
      }
      for (const size_t knob : model_.constraints[c].knobs) {
        held[knob] = fixed_[knob];
      }
      for (int run = 0; run < kRunsPerGroup; ++run) {
        if (stop_.stop_requested() || !WalkGroup(held, rng)) return;
      }
    }
  }

  // False when there are enough.
  bool WalkGroup(const FixedKnobs& held, Rng* rng) {
    SpaceWalk walk({.model = &model_,
                    .view = &view_,
                    .fixed = &held,
                    .order = nullptr,
                    .rng = rng,
                    .skipped = nullptr,
                    .stop = stop_});
    int64_t steps = kGroupSteps;
    int points = kPointsPerRun;
    bool more = true;
    walk.Run(&steps, [&](const Point& point) {
      more = Keep(point);
      return more && --points > 0;
    });
    return more;
  }

  const SpaceModel& model_;
  const SpaceView& view_;
  const FixedKnobs& fixed_;
  const size_t limit_;
  const std::stop_token stop_;
  SpaceEvaluation evaluation_;
  const Point start_;
  std::vector<int32_t> start_levels_;
  bool start_is_valid_ = false;
  std::vector<bool> steers_;  // by knob: an active_if names it
  std::vector<std::vector<size_t>> constraints_of_;  // by knob

  Point candidate_;
  std::vector<int32_t> levels_;
  std::vector<BrokenMove> broken_;
  std::unordered_set<std::string> seen_;
  std::vector<Point> found_;
};

}  // namespace

std::vector<Point> FindNeighbours(const SpaceModel& model,
                                  const SpaceView& view, const Point& point,
                                  const FixedKnobs& fixed, size_t limit,
                                  Rng* rng, const std::stop_token& stop) {
  if (limit == 0) return {};
  return NeighbourSearch(model, view, point, fixed, limit, stop).Find(rng);
}

}  // namespace cubicml
