// SPDX-License-Identifier: Apache-2.0
//
// What a study knows about one context: which configurations are taken, which
// are to be handed out again, what the baseline and the best have measured, and
// what the next suggestions are.

#ifndef CUBICML_SERVER_CORE_CONTEXT_STATE_H_
#define CUBICML_SERVER_CORE_CONTEXT_STATE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/search_task.h"
#include "server/core/study_definition.h"
#include "server/core/valid_walk.h"

namespace cubicml {

// How often a configuration is handed out before it counts as tried.
inline constexpr int32_t kMaxAttempts = 3;

// What the baseline of a context has measured so far.
class BaselineTally {
 public:
  explicit BaselineTally(size_t metrics) : sums_(metrics), counts_(metrics) {}

  // By metric, NaN where not measured.
  void Add(const std::vector<double>& metrics);
  BaselineMetrics Means(const StudyDefinition& definition) const;
  // The mean of the first objective.
  std::optional<double> objective() const;

 private:
  std::vector<double> sums_;  // by metric
  std::vector<size_t> counts_;
};

// Not thread-safe: guarded by the study's mutex.
class ContextState {
 public:
  // The configuration that is the best on average, of those that worked more
  // often than not: the best single measurement of a noisy job was lucky.
  struct Best {
    TrialNumber number;      // its first trial that worked
    double objective = 0.0;  // mean, where it worked
    size_t row = 0;          // of that trial in the study's RowLog
  };
  // Suggestions that were computed ahead, the best first.
  struct ReadyList {
    SearchKind kind = SearchKind::kRandom;
    int64_t model_version = 0;
    std::deque<Pick> picks;
  };

  ContextState(int group, Context context, const StudyDefinition& definition);

  const int group;
  const Context context;
  const uint64_t hash;  // of the context, stable
  // nullopt where the defaults break a constraint.
  const std::optional<Point> baseline;
  const std::string baseline_key;

  // ---- Configurations ----

  // It is measured, running, lost, or withdrawn: not to be suggested again
  // except on purpose.
  bool IsTaken(const std::string& key) const;
  size_t taken() const { return measured_.size() + unmeasured_.size(); }
  // Those taken besides the baseline.
  size_t explored() const;
  const std::unordered_set<std::string>& unmeasured() const {
    return unmeasured_;
  }

  // Taken by a suggestion that is not stored yet.
  void Reserve(const Pick& pick);
  // The suggestion could not be stored: its configuration may be suggested.
  void Release(const Pick& pick);
  // The suggestion is a trial now.
  void Confirm(const std::string& key);
  const std::unordered_map<std::string, Point>& reserved() const {
    return reserved_;
  }

  // ---- Lost attempts ----

  // Handed out again, in the order in which they were lost.
  std::deque<Pick>& lost() { return lost_; }
  void AddLost(Pick pick);
  // Returns false when it is not there: handed out again, or never added.
  bool RemoveLost(TrialNumber number);
  // The same by configuration; the number of the lost trial, or 0.
  TrialNumber RemoveLost(const std::string& key);

  // ---- Measurements ----

  // `row` is the index of `measured` in the study's RowLog.
  void AddMeasurement(const MeasuredRow& measured, size_t row);
  size_t finished() const { return finished_; }
  std::optional<Best> best() const;
  const BaselineTally& baseline_tally() const { return baseline_tally_; }

  // ---- Suggestions ahead ----

  ReadyList ready;
  // A thread is searching for more; others wait for it.
  bool searching = false;
  bool waited = false;    // one has waited since the last search began
  size_t last_batch = 0;  // how many the last search was to find
  void BeginBatch(size_t count) {
    waited = false;
    last_batch = count;
  }
  bool design_made = false;  // the initial design was computed,
  bool design_done = false;  // and all of it is taken
  // taken() when a search found nothing more; none so far if unset.
  std::optional<size_t> exhausted_at;
  // Whether any configuration is valid here, once that was found out.
  Existence any_valid = Existence::kUnknown;
  // When a suggestion was last asked for, by the study's count of calls; 0 for
  // never.
  uint64_t last_asked = 0;

 private:
  // The trials of one configuration. `sum` and `first` are of those that worked
  // and measured the objective.
  struct Tally {
    double sum = 0.0;
    int64_t count = 0;
    int64_t failed = 0;
    TrialNumber first;
    size_t row = 0;
  };
  // What a configuration is ranked by: the least is the best, and of equals the
  // first, however they arrived.
  struct Rank {
    double cost = 0.0;  // its mean, negative where more is better
    TrialNumber number;
    size_t row = 0;
    auto operator<=>(const Rank&) const = default;
  };
  static std::optional<Rank> RankOf(const Tally& tally, bool maximize);

  std::unordered_map<std::string, Tally> measured_;
  std::unordered_set<std::string> unmeasured_;
  std::unordered_map<std::string, Point> reserved_;
  std::deque<Pick> lost_;
  size_t finished_ = 0;
  std::set<Rank> ranking_;
  const bool maximize_;
  BaselineTally baseline_tally_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_CONTEXT_STATE_H_
