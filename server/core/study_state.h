// SPDX-License-Identifier: Apache-2.0
//
// What is kept in memory of one study: a cache of the store that answers what
// every suggestion needs without reading trials. All of it can be rebuilt from
// the store.

#ifndef CUBICML_SERVER_CORE_STUDY_STATE_H_
#define CUBICML_SERVER_CORE_STUDY_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/context_state.h"
#include "server/core/parsed_trial.h"
#include "server/core/row_log.h"
#include "server/core/search_task.h"
#include "server/core/study_definition.h"

namespace cubicml {

// Different contexts of a study; more are refused.
inline constexpr size_t kMaxContexts = 65'536;

// What a suggestion is for.
struct SuggestionNeed {
  int group = 0;  // the context
  FixedKnobs fixed;
  bool any_fixed = false;
  bool exploit = false;
};

// Whether the point has the values that the caller has decided.
bool SatisfiesFixed(const Point& point, const FixedKnobs& fixed);

// Thread-safe: a monitor. Its mutex is never held while anything waits for the
// store, for training or for a search.
class StudyState {
 public:
  StudyState(StudyId id, std::shared_ptr<const StudyDefinition> definition,
             const Clock* clock);

  StudyId id() const { return id_; }
  const StudyDefinition& definition() const { return *definition_; }

  // ---- Trials ----

  // Changes of one trial are ordered by tickets. They are drawn when the change
  // is made of what is stored, and the store refuses one that was made of
  // something older: what the store did first is never applied last.
  uint64_t NewTicket() { return next_ticket_.fetch_add(1) + 1; }
  // The trial is now as the store has it. `lease_left` counts for held ones.
  void Apply(const ParsedTrial& parsed, uint64_t ticket,
             absl::Duration lease_left);
  // For a stored trial that does not fit its study: it is only counted.
  void ApplyUnreadable(v1::Trial::State state);

  // What a measurement of this trial's context is compared with: empty when
  // nothing was measured, or the trial is itself a baseline.
  BaselineMetrics FindBaseline(TrialNumber number) const;
  // What the metrics of a configuration must keep in this context.
  std::vector<MetricBound> FindBounds(const Context& context) const;
  // Makes a context known, for measurements that are brought from elsewhere.
  // RESOURCE_EXHAUSTED when there are too many.
  struct ContextBaseline {
    std::string key;  // of the baseline; empty where there is none
    BaselineTally tally;
  };
  absl::StatusOr<ContextBaseline> AddContext(const Context& context);

  // Active trials of this client and context, by number.
  struct HeldTrial {
    TrialNumber number;
    Point point;
  };
  std::vector<HeldTrial> ListHeld(const std::string& client_id,
                                  int group) const;
  struct LapsedLease {
    TrialNumber number;
    absl::Time expire_time;  // as stored
  };
  std::vector<LapsedLease> ListLapsedLeases() const;
  // An expired trial's holder came back: true when its configuration was not
  // handed out again, and then it will not be. Undo with ReturnExpired.
  bool ClaimExpired(TrialNumber number);
  void ReturnExpired(TrialNumber number);

  v1::StudyProgress Progress() const;
  int64_t held_trials() const;
  // Rows, and for ListOptimalTrials the contexts by group.
  RowLog::Snapshot Rows() const;
  std::vector<Context> Contexts() const;

  // ---- Suggestions (study_state_suggest.cc) ----

  // The group of a context; RESOURCE_EXHAUSTED when there are too many.
  absl::StatusOr<int> FindOrAddContext(const Context& context);
  // The index in Rows() of the first trial of the configuration that is the
  // best of the context.
  std::optional<size_t> BestRow(int group) const;
  // The baseline of the context, if it is valid.
  std::optional<Pick> Baseline(int group);

  enum class Step {
    kPicked,     // `picks` has grown
    kSearch,     // run `task`, then FinishSearch
    kWait,       // another thread searches: WaitForSearch
    kExhausted,  // nothing is left
  };
  // Takes up to `count` configurations that are at hand, and says what to do
  // when there are none. What is picked is reserved.
  Step TakeAtHand(const SuggestionNeed& need, size_t count,
                  std::vector<Pick>* picks, SearchTask* task);
  // Makes what a search found available, and lets those who wait go on.
  // REQUIRES: `need` and `task` of the TakeAtHand that said kSearch. With fixed
  // knobs up to `count` are taken into `picks` at once. An error leaves all as
  // it was.
  void FinishSearch(const SuggestionNeed& need, const SearchTask& task,
                    absl::StatusOr<std::vector<Pick>> found, size_t count,
                    std::vector<Pick>* picks);
  void WaitForSearch(int group, absl::Duration timeout);
  // A task for PickAtRandom.
  SearchTask MakeRandomTask(const SuggestionNeed& need);
  // Takes it; false when it is taken meanwhile.
  bool Reserve(int group, const Pick& pick);
  // Gives back what could not be stored.
  void Release(int group, const Pick& pick);
  // It will not be handed out, now or later.
  void Discard(int group, const Pick& pick);
  bool AnyRunning(int group) const;
  // Whether any configuration of the context is valid, as far as it is known.
  Existence AnyValid(int group) const;
  void RememberAnyValid(int group, Existence any);

  // ---- Model (study_state_suggest.cc) ----

  std::shared_ptr<const Model> model() const;
  // Enough has been measured since the last training.
  bool NeedsTraining() const;
  // What to train on; remembers that this was tried.
  struct TrainingInput {
    RowLog::Snapshot rows;
    std::vector<MetricBound> bounds;  // of all contexts
    int64_t version = 0;
  };
  TrainingInput BeginTraining();
  // The last attempt came to nothing for a reason that passes: try again.
  void RetryTraining();
  // A model that the store did not take: training is needed until it is taken
  // back, to be stored.
  void KeepUnstored(std::shared_ptr<const Model> model);
  std::shared_ptr<const Model> TakeUnstored();  // null for none
  // Tasks that compute suggestions of recent contexts with this model.
  std::vector<SearchTask> MakeAheadTasks(std::shared_ptr<const Model> model);
  struct AheadList {
    SearchTask task;
    std::vector<Pick> picks;
  };
  // From now on suggestions come from this model and these lists.
  void InstallModel(std::shared_ptr<const Model> model,
                    std::vector<AheadList> lists);

  // A list of suggestions is running out.
  bool NeedsRefill() const;
  // Tasks that find more of those, and their results.
  std::vector<SearchTask> MakeRefillTasks();
  void Refill(const SearchTask& task, std::vector<Pick> picks);
  // The newest stored version, where its model is of no use any more.
  void SetModelVersion(int64_t version);

  // Set when the study was changed or deleted: nothing more is stored for it.
  void Retire() { retired_.store(true); }
  bool retired() const { return retired_.load(); }

 private:
  struct TrialRecord {
    v1::Trial::State state = v1::Trial::STATE_UNSPECIFIED;
    int group = -1;
    uint64_t ticket = 0;
    bool reissued = false;  // its configuration was handed out again
    bool baseline = false;  // its configuration is the baseline's
  };
  struct ActiveTrial {
    int group = -1;
    std::string client_id;
    v1::Trial::State state = v1::Trial::ACTIVE;
    Point point;
    absl::Time expire_time;        // stored
    absl::Duration expire_moment;  // on Clock::Elapsed
  };

  // As GroupLocked; RESOURCE_EXHAUSTED when there are too many.
  absl::StatusOr<int> AddGroupLocked(const Context& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int GroupLocked(const Context& context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Those of all contexts.
  std::vector<MetricBound> ListBoundsLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyHeldLocked(const ParsedTrial& parsed, int group,
                       absl::Duration lease_left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ApplyEndLocked(const ParsedTrial& parsed, v1::Trial::State before,
                      ContextState* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddRowLocked(const ParsedTrial& parsed, ContextState* context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EraseActiveLocked(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  bool TakeLostLocked(const SuggestionNeed& need, ContextState* context,
                      std::vector<Pick>* picks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeBaselineLocked(const SuggestionNeed& need, ContextState* context,
                          std::vector<Pick>* picks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeReadyLocked(const SuggestionNeed& need, ContextState* context,
                       std::vector<Pick>* picks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SearchKind ChooseKindLocked(const SuggestionNeed& need,
                              const ContextState& context) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SearchTask MakeTaskLocked(const SuggestionNeed& need, SearchKind kind,
                            size_t count, const ContextState& context) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  size_t SearchCountLocked(SearchKind kind, size_t count,
                           const ContextState& context) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const StudyId id_;
  const std::shared_ptr<const StudyDefinition> definition_;
  const Clock* const clock_;
  std::atomic<uint64_t> next_ticket_{0};
  std::atomic<bool> retired_{false};

  mutable Mutex mu_;
  CondVar searched_;
  std::vector<std::unique_ptr<ContextState>> contexts_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, int> groups_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<int64_t, TrialRecord> records_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, ActiveTrial> active_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, std::vector<int64_t>> held_by_
      ABSL_GUARDED_BY(mu_);
  std::map<v1::Trial::State, int64_t> counts_ ABSL_GUARDED_BY(mu_);
  RowLog rows_ ABSL_GUARDED_BY(mu_);
  // The context with the most measurements, which progress speaks of.
  int main_group_ ABSL_GUARDED_BY(mu_) = -1;
  std::shared_ptr<const Model> model_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const Model> unstored_ ABSL_GUARDED_BY(mu_);
  size_t trained_rows_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t model_version_ ABSL_GUARDED_BY(mu_) = 0;  // never used again
  uint64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool refill_wanted_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_STATE_H_
