// SPDX-License-Identifier: Apache-2.0
//
// The trials: the hot path of the store. Protos are parsed and serialized on
// the calling thread; the writer's thread only runs SQL.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/list_query.h"
#include "storage/proto_time.h"
#include "storage/sqlite_requests.h"
#include "storage/sqlite_study_store.h"
#include "storage/store_errors.h"
#include "storage/trial_row.h"

namespace cubicml {
namespace {

absl::StatusOr<v1::Trial> ParseTrial(absl::string_view bytes) {
  v1::Trial trial;
  if (!trial.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("a stored trial cannot be read");
  }
  return trial;
}

}  // namespace

// ---- CreateTrials ----

// A study that is set aside to be deleted is gone (sqlite_deletes.cc).
constexpr absl::string_view kTakeNumbersSql =
    "UPDATE studies SET next_trial_number = next_trial_number + ?2 "
    "WHERE id = ?1 AND name NOT LIKE 'deleted/%' RETURNING next_trial_number, "
    "name, objective";
constexpr absl::string_view kInsertTrialSql =
    "INSERT INTO trials (study_id, number, state, reason, source, objective, "
    "client_id, attempt, late, create_time_us, update_time_us, end_time_us, "
    "lease_expire_time_us, model_version, revision, parameters, context, "
    "metrics, trial) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, "
    "?11, ?12, ?13, 1, ?14, ?15, ?16, ?17)";
constexpr absl::string_view kGetTrialRangeSql =
    "SELECT trial FROM trials WHERE study_id = ?1 AND number >= ?2 "
    "AND number < ?2 + ?3 ORDER BY number";

namespace {

struct NumberRange {
  int64_t first = 0;
  std::string study_name;
  std::string objective;  // metric
};

absl::StatusOr<NumberRange> TakeNumbers(Database* db, StudyId study,
                                        int64_t count) {
  CUBICML_ASSIGN_OR_RETURN(Statement take, db->Cached(kTakeNumbersSql));
  take.BindInt(1, study.value);
  take.BindInt(2, count);
  CUBICML_ASSIGN_OR_RETURN(const bool found, take.Step());
  if (!found) return StudyNotFoundError(study);
  NumberRange range;
  range.first = take.Int(0) - count;
  range.study_name = std::string(take.Text(1));
  range.objective = std::string(take.Text(2));
  CUBICML_RETURN_IF_ERROR(take.Run());
  return range;
}

absl::Status InsertTrial(Database* db, StudyId study, int64_t number,
                         std::optional<double> objective,
                         const v1::Trial& trial, const TrialRow& row) {
  CUBICML_ASSIGN_OR_RETURN(Statement insert, db->Cached(kInsertTrialSql));
  insert.BindInt(1, study.value);
  insert.BindInt(2, number);
  insert.BindText(3, FormatTrialState(trial.state()));
  insert.BindText(4, FormatTrialReason(trial.reason()));
  insert.BindText(5, FormatTrialSource(trial.suggestion().source()));
  insert.BindOptional(6, objective);
  insert.BindText(7, trial.client_id());
  insert.BindInt(8, trial.attempt());
  insert.BindInt(9, trial.late());
  insert.BindInt(10, MicrosFromTimestamp(trial.create_time()));
  insert.BindOptional(11, row.end_time_us);
  insert.BindOptional(12, row.lease_expire_time_us);
  insert.BindInt(13, trial.suggestion().model_version());
  insert.BindText(14, row.parameters);
  insert.BindText(15, row.context);
  insert.BindText(16, row.metrics);
  insert.BindBlob(17, row.trial);
  return insert.Run();
}

// As they are now.
absl::Status ReadCreatedTrials(Database* db, const RequestAnswer& answer,
                               std::vector<v1::Trial>* trials) {
  const int64_t count = answer.trial_count.value_or(0);
  CUBICML_ASSIGN_OR_RETURN(Statement get, db->Cached(kGetTrialRangeSql));
  get.BindOptional(1, answer.study_id);
  get.BindOptional(2, answer.first_trial);
  get.BindInt(3, count);
  trials->clear();
  while (true) {
    CUBICML_ASSIGN_OR_RETURN(const bool found, get.Step());
    if (!found) break;
    CUBICML_ASSIGN_OR_RETURN(v1::Trial trial, ParseTrial(get.Blob(0)));
    trials->push_back(std::move(trial));
  }
  // Trials only go with their study.
  if (static_cast<int64_t>(trials->size()) < count) {
    return RequestTrialsGoneError();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::Trial>> SqliteStudyStore::CreateTrials(
    StudyId study, std::vector<v1::Trial> trials, const RequestKey& key) {
  const int64_t now_us = NowMicros();
  std::vector<TrialRow> rows;
  rows.reserve(trials.size());
  for (v1::Trial& trial : trials) {
    trial.clear_name();
    SetTimestamp(now_us, trial.mutable_create_time());
    SetTimestamp(now_us, trial.mutable_update_time());
    CUBICML_ASSIGN_OR_RETURN(TrialRow row, MakeTrialRow(trial));
    rows.push_back(std::move(row));
  }
  const auto count = static_cast<int64_t>(trials.size());
  const absl::Status written = queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(const std::optional<RequestAnswer> answered,
                             FindRequest(db, key));
    if (answered.has_value()) return ReadCreatedTrials(db, *answered, &trials);
    CUBICML_ASSIGN_OR_RETURN(const NumberRange range,
                             TakeNumbers(db, study, count));
    v1::Trial named;
    for (size_t i = 0; i < trials.size(); ++i) {
      const int64_t number = range.first + static_cast<int64_t>(i);
      trials[i].set_name(absl::StrCat(range.study_name, "/trials/", number));
      // Serialized messages that follow each other are one merged message, so
      // the name, known only now, can be added without serializing again.
      named.set_name(trials[i].name());
      named.AppendToString(&rows[i].trial);
      CUBICML_RETURN_IF_ERROR(InsertTrial(
          db, study, number, ObjectiveOf(trials[i], range.objective), trials[i],
          rows[i]));
    }
    RequestAnswer answer;
    answer.study_id = study.value;
    answer.first_trial = range.first;
    answer.trial_count = count;
    return InsertRequest(db, key, now_us, answer);
  });
  CUBICML_RETURN_IF_ERROR(written);
  return trials;
}

absl::StatusOr<std::optional<std::vector<v1::Trial>>>
SqliteStudyStore::FindCreatedTrials(const RequestKey& key) {
  std::optional<std::vector<v1::Trial>> result;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(const std::optional<RequestAnswer> answered,
                             FindRequest(db, key));
    if (!answered.has_value()) return absl::OkStatus();
    result.emplace();
    return ReadCreatedTrials(db, *answered, &*result);
  });
  CUBICML_RETURN_IF_ERROR(read);
  return result;
}

// ---- UpdateTrial ----

constexpr absl::string_view kGetTrialForUpdateSql =
    "SELECT trial, trials.revision, studies.objective, parameters, context, "
    "metrics FROM trials JOIN studies ON id = study_id "
    "WHERE study_id = ?1 AND number = ?2";
constexpr absl::string_view kUpdateTrialSql =
    "UPDATE trials SET state = ?4, reason = ?5, source = ?6, objective = ?7, "
    "client_id = ?8, attempt = ?9, late = ?10, update_time_us = ?11, "
    "end_time_us = ?12, lease_expire_time_us = ?13, model_version = ?14, "
    "parameters = ?15, context = ?16, metrics = ?17, trial = ?18, "
    "revision = revision + 1 "
    "WHERE study_id = ?1 AND number = ?2 AND revision = ?3";
// Where only the proto and the lease changed, as by a heartbeat: leaves the
// other indexes alone.
constexpr absl::string_view kRenewTrialSql =
    "UPDATE trials SET update_time_us = ?4, lease_expire_time_us = ?5, "
    "trial = ?6, revision = revision + 1 "
    "WHERE study_id = ?1 AND number = ?2 AND revision = ?3";

namespace {

// An update of a trial: what was read, what it becomes, how it went.
struct TrialChange {
  std::optional<RequestAnswer> answered;  // carried out earlier
  int64_t revision = 0;
  std::string objective_metric;
  TrialRow before;
  v1::Trial trial;  // as it becomes
  TrialRow after;
  std::optional<double> objective;
  bool only_renewed = false;
  bool conflict = false;  // somebody was faster
};

absl::Status ReadForUpdate(Database* db, StudyId study, TrialNumber number,
                           const RequestKey& key, TrialChange* change) {
  CUBICML_ASSIGN_OR_RETURN(change->answered, FindRequest(db, key));
  if (change->answered.has_value()) return absl::OkStatus();
  CUBICML_ASSIGN_OR_RETURN(Statement get, db->Cached(kGetTrialForUpdateSql));
  get.BindInt(1, study.value);
  get.BindInt(2, number.value);
  CUBICML_ASSIGN_OR_RETURN(const bool found, get.Step());
  if (!found) return TrialNotFoundError(study, number);
  change->before.trial = std::string(get.Blob(0));
  change->revision = get.Int(1);
  change->objective_metric = std::string(get.Text(2));
  change->before.parameters = std::string(get.Text(3));
  change->before.context = std::string(get.Text(4));
  change->before.metrics = std::string(get.Text(5));
  return absl::OkStatus();
}

// The columns that a renewal leaves alone, apart from the JSON ones.
struct PlainColumns {
  explicit PlainColumns(const v1::Trial& trial)
      : state(trial.state()),
        reason(trial.reason()),
        source(trial.suggestion().source()),
        client_id(trial.client_id()),
        attempt(trial.attempt()),
        late(trial.late()),
        end_time_us(trial.has_end_time() ? MicrosFromTimestamp(trial.end_time())
                                         : -1),
        model_version(trial.suggestion().model_version()) {}
  bool operator==(const PlainColumns&) const = default;

  v1::Trial::State state;
  v1::Trial::Reason reason;
  v1::Trial::Source source;
  std::string client_id;
  int32_t attempt;
  bool late;
  int64_t end_time_us;
  int64_t model_version;
};

absl::Status MakeChange(const StudyStore::TrialMutation& mutation,
                        int64_t now_us, TrialChange* change) {
  CUBICML_ASSIGN_OR_RETURN(change->trial, ParseTrial(change->before.trial));
  v1::Trial& trial = change->trial;
  const std::string name = trial.name();
  const google::protobuf::Timestamp create_time = trial.create_time();
  const PlainColumns before(trial);
  CUBICML_RETURN_IF_ERROR(mutation(&trial));
  trial.set_name(name);
  *trial.mutable_create_time() = create_time;
  SetTimestamp(now_us, trial.mutable_update_time());
  CUBICML_ASSIGN_OR_RETURN(change->after, MakeTrialRow(trial));
  change->objective = ObjectiveOf(trial, change->objective_metric);
  change->only_renewed =
      before == PlainColumns(trial) &&
      change->before.parameters == change->after.parameters &&
      change->before.context == change->after.context &&
      change->before.metrics == change->after.metrics;
  return absl::OkStatus();
}

void BindRenewal(const TrialChange& change, int64_t now_us, Statement* update) {
  update->BindInt(4, now_us);
  update->BindOptional(5, change.after.lease_expire_time_us);
  update->BindBlob(6, change.after.trial);
}

void BindUpdate(const TrialChange& change, int64_t now_us, Statement* update) {
  const v1::Trial& trial = change.trial;
  update->BindText(4, FormatTrialState(trial.state()));
  update->BindText(5, FormatTrialReason(trial.reason()));
  update->BindText(6, FormatTrialSource(trial.suggestion().source()));
  update->BindOptional(7, change.objective);
  update->BindText(8, trial.client_id());
  update->BindInt(9, trial.attempt());
  update->BindInt(10, trial.late());
  update->BindInt(11, now_us);
  update->BindOptional(12, change.after.end_time_us);
  update->BindOptional(13, change.after.lease_expire_time_us);
  update->BindInt(14, trial.suggestion().model_version());
  update->BindText(15, change.after.parameters);
  update->BindText(16, change.after.context);
  update->BindText(17, change.after.metrics);
  update->BindBlob(18, change.after.trial);
}

absl::Status WriteChange(Database* db, StudyId study, TrialNumber number,
                         int64_t now_us, TrialChange* change) {
  CUBICML_ASSIGN_OR_RETURN(
      Statement update,
      db->Cached(change->only_renewed ? kRenewTrialSql : kUpdateTrialSql));
  update.BindInt(1, study.value);
  update.BindInt(2, number.value);
  update.BindInt(3, change->revision);
  change->only_renewed ? BindRenewal(*change, now_us, &update)
                       : BindUpdate(*change, now_us, &update);
  CUBICML_RETURN_IF_ERROR(update.Run());
  change->conflict = db->Changes() == 0;
  if (change->conflict) return absl::AbortedError("the trial has changed");
  return absl::OkStatus();
}

absl::Status WriteAnswer(Database* db, StudyId study, const RequestKey& key,
                         int64_t now_us, const TrialChange& change) {
  if (key.id.empty()) return absl::OkStatus();
  RequestAnswer answer;
  answer.study_id = study.value;
  answer.answer = change.after.trial;
  return InsertRequest(db, key, now_us, answer);
}

absl::StatusOr<v1::Trial> AnswerOf(TrialChange change) {
  if (!change.answered.has_value()) return std::move(change.trial);
  return ParseTrial(change.answered->answer);
}

}  // namespace

absl::StatusOr<v1::Trial> SqliteStudyStore::UpdateTrial(
    StudyId study, TrialNumber number, const TrialMutation& mutation,
    const RequestKey& key) {
  for (int i = 0; i < OptimisticTries(); ++i) {
    const int64_t now_us = NowMicros();
    TrialChange change;
    const absl::Status read = Read([&](Database* db) {
      return ReadForUpdate(db, study, number, key, &change);
    });
    CUBICML_RETURN_IF_ERROR(read);
    if (change.answered.has_value()) return AnswerOf(std::move(change));
    CUBICML_RETURN_IF_ERROR(MakeChange(mutation, now_us, &change));
    const absl::Status status = queue_.Apply([&](Database* db) -> absl::Status {
      CUBICML_RETURN_IF_ERROR(WriteChange(db, study, number, now_us, &change));
      return WriteAnswer(db, study, key, now_us, change);
    });
    if (status.ok()) return AnswerOf(std::move(change));
    // The request may have been carried out meanwhile, by a twin.
    if (!change.conflict && !absl::IsAlreadyExists(status)) return status;
  }
  TrialChange change;
  const absl::Status written = queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_RETURN_IF_ERROR(ReadForUpdate(db, study, number, key, &change));
    if (change.answered.has_value()) return absl::OkStatus();
    const int64_t now_us = NowMicros();
    CUBICML_RETURN_IF_ERROR(MakeChange(mutation, now_us, &change));
    CUBICML_RETURN_IF_ERROR(WriteChange(db, study, number, now_us, &change));
    return WriteAnswer(db, study, key, now_us, change);
  });
  CUBICML_RETURN_IF_ERROR(written);
  return AnswerOf(std::move(change));
}

// ---- GetTrial ----

constexpr absl::string_view kGetTrialSql =
    "SELECT trial FROM trials WHERE study_id = ?1 AND number = ?2";

absl::StatusOr<v1::Trial> SqliteStudyStore::GetTrial(StudyId study,
                                                     TrialNumber number) {
  std::string bytes;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(Statement get, db->Cached(kGetTrialSql));
    get.BindInt(1, study.value);
    get.BindInt(2, number.value);
    CUBICML_ASSIGN_OR_RETURN(const bool found, get.Step());
    if (!found) return TrialNotFoundError(study, number);
    bytes = std::string(get.Blob(0));
    return absl::OkStatus();
  });
  CUBICML_RETURN_IF_ERROR(read);
  return ParseTrial(bytes);
}

// ---- CountTrials ----

constexpr absl::string_view kCountTrialsSql =
    "SELECT state, trials FROM trial_counts WHERE study_id = ?1 "
    "AND trials > 0";

absl::StatusOr<std::map<v1::Trial::State, int64_t>>
SqliteStudyStore::CountTrials(StudyId study) {
  std::map<v1::Trial::State, int64_t> counts;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(Statement count, db->Cached(kCountTrialsSql));
    count.BindInt(1, study.value);
    while (true) {
      CUBICML_ASSIGN_OR_RETURN(const bool found, count.Step());
      if (!found) return absl::OkStatus();
      v1::Trial::State state = v1::Trial::STATE_UNSPECIFIED;
      v1::Trial::State_Parse(std::string(count.Text(0)), &state);
      counts[state] += count.Int(1);
    }
  });
  CUBICML_RETURN_IF_ERROR(read);
  return counts;
}

// ---- ListExpiredLeases ----

constexpr absl::string_view kListExpiredLeasesSql =
    "SELECT study_id, number FROM trials WHERE lease_expire_time_us < ?1 "
    "AND state IN ('ACTIVE', 'STOPPING') ORDER BY lease_expire_time_us";

absl::StatusOr<std::vector<StudyStore::TrialKey>>
SqliteStudyStore::ListExpiredLeases(absl::Time now) {
  std::vector<TrialKey> expired;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(Statement list, db->Cached(kListExpiredLeasesSql));
    list.BindInt(1, absl::ToUnixMicros(now));
    while (true) {
      CUBICML_ASSIGN_OR_RETURN(const bool found, list.Step());
      if (!found) return absl::OkStatus();
      expired.push_back({StudyId{list.Int(0)}, TrialNumber{list.Int(1)}});
    }
  });
  CUBICML_RETURN_IF_ERROR(read);
  return expired;
}

}  // namespace cubicml
