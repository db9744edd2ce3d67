// SPDX-License-Identifier: Apache-2.0
//
// The models of studies.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "storage/proto_time.h"
#include "storage/sqlite_study_store.h"
#include "storage/store_errors.h"

namespace cubicml {
namespace {

std::optional<double> OptionalReal(bool present, double value) {
  return present ? std::optional<double>(value) : std::nullopt;
}

int64_t DurationMicros(const google::protobuf::Duration& duration) {
  return absl::ToInt64Microseconds(absl::Seconds(duration.seconds()) +
                                   absl::Nanoseconds(duration.nanos()));
}

}  // namespace

// ---- CreateModel ----

// A study that is set aside to be deleted is gone (sqlite_deletes.cc).
constexpr absl::string_view kLatestVersionSql =
    "SELECT (SELECT max(version) FROM models WHERE study_id = ?1) "
    "FROM studies WHERE id = ?1 AND name NOT LIKE 'deleted/%'";
constexpr absl::string_view kInsertModelSql =
    "INSERT INTO models (study_id, version, kind, rows, kendall_tau, "
    "coverage90, feasibility_auc, training_time_us, create_time_us, quality, "
    "checkpoint) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
constexpr absl::string_view kDeleteOldModelsSql =
    "DELETE FROM models WHERE study_id = ?1 AND version NOT IN (SELECT version "
    "FROM models WHERE study_id = ?1 ORDER BY version DESC LIMIT ?2)";

absl::Status SqliteStudyStore::CreateModel(StudyId study,
                                           const StoredModel& model) {
  const v1::SurrogateQuality& quality = model.quality;
  const std::string quality_bytes = quality.SerializeAsString();
  return queue_.Apply([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(Statement latest, db->Cached(kLatestVersionSql));
    latest.BindInt(1, study.value);
    CUBICML_ASSIGN_OR_RETURN(const bool found, latest.Step());
    if (!found) return StudyNotFoundError(study);
    if (quality.model_version() <= latest.Int(0)) {
      return ModelVersionError(quality.model_version(), latest.Int(0));
    }
    latest.Reset();
    CUBICML_ASSIGN_OR_RETURN(Statement insert, db->Cached(kInsertModelSql));
    insert.BindInt(1, study.value);
    insert.BindInt(2, quality.model_version());
    insert.BindText(3, quality.kind());
    insert.BindInt(4, quality.rows());
    insert.BindOptional(
        5, OptionalReal(quality.has_kendall_tau(), quality.kendall_tau()));
    insert.BindOptional(
        6, OptionalReal(quality.has_coverage90(), quality.coverage90()));
    insert.BindOptional(7, OptionalReal(quality.has_feasibility_auc(),
                                        quality.feasibility_auc()));
    insert.BindInt(8, DurationMicros(quality.training_time()));
    insert.BindInt(9, MicrosFromTimestamp(quality.create_time()));
    insert.BindBlob(10, quality_bytes);
    insert.BindBlob(11, model.checkpoint);
    CUBICML_RETURN_IF_ERROR(insert.Run());
    CUBICML_ASSIGN_OR_RETURN(Statement prune, db->Cached(kDeleteOldModelsSql));
    prune.BindInt(1, study.value);
    prune.BindInt(2, kKeptModels);
    return prune.Run();
  });
}

// ---- GetLatestModel ----

constexpr absl::string_view kGetLatestModelSql =
    "SELECT quality, checkpoint FROM models WHERE study_id = ?1 "
    "ORDER BY version DESC LIMIT 1";

absl::StatusOr<StoredModel> SqliteStudyStore::GetLatestModel(StudyId study) {
  StoredModel model;
  const absl::Status read = Read([&](Database* db) -> absl::Status {
    CUBICML_ASSIGN_OR_RETURN(Statement get, db->Cached(kGetLatestModelSql));
    get.BindInt(1, study.value);
    CUBICML_ASSIGN_OR_RETURN(const bool found, get.Step());
    if (!found) return ModelNotFoundError(study);
    const absl::string_view quality = get.Blob(0);
    if (!model.quality.ParseFromArray(quality.data(),
                                      static_cast<int>(quality.size()))) {
      return absl::DataLossError("a stored model cannot be read");
    }
    model.checkpoint = std::string(get.Blob(1));
    return absl::OkStatus();
  });
  CUBICML_RETURN_IF_ERROR(read);
  return model;
}

}  // namespace cubicml
