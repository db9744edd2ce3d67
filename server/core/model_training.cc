// SPDX-License-Identifier: Apache-2.0

#include "server/core/model_training.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "server/core/time_proto.h"

namespace cubicml {
namespace {

// Keeps the generator of training apart from those of suggestions.
constexpr uint64_t kTrainingSeedUse = 100;
// With fewer rows a rank correlation is mostly noise.
constexpr int64_t kMinRowsToRefuse = 20;

bool IsFinite(const v1::SurrogateQuality& quality) {
  return std::isfinite(quality.kendall_tau()) &&
         std::isfinite(quality.coverage90()) &&
         std::isfinite(quality.feasibility_auc());
}

absl::Status CheckQuality(const v1::SurrogateQuality& quality) {
  if (!IsFinite(quality)) {
    return absl::InternalError("the model's quality is not finite");
  }
  if (quality.rows() >= kMinRowsToRefuse && quality.has_kendall_tau() &&
      quality.kendall_tau() < 0.0) {
    return absl::OutOfRangeError(
        absl::StrCat("it would rank trials that it has not seen worse than a "
                     "coin would, kendall_tau = ",
                     quality.kendall_tau()));
  }
  return absl::OkStatus();
}

}  // namespace

Dataset MakeDataset(const StudyDefinition& definition,
                    const StudyState::TrainingInput& input) {
  const RowLog::Snapshot& rows = input.rows;
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rows[a].number < rows[b].number;
  });
  Dataset dataset;
  dataset.metrics = definition.metrics();
  dataset.bounds = input.bounds;
  dataset.features.columns = definition.featurizer().columns();
  dataset.features.rows = order.size();
  dataset.features.values.reserve(order.size() * dataset.features.columns);
  dataset.rows.reserve(order.size());
  std::map<int, int> groups;
  for (size_t i : order) {
    const MeasuredRow& row = rows[i];
    dataset.features.values.insert(dataset.features.values.end(),
                                   row.features.begin(), row.features.end());
    DatasetRow training_row;
    training_row.feasible = row.ran;
    training_row.metrics = row.metrics;
    training_row.group =
        groups.try_emplace(row.group, static_cast<int>(groups.size()))
            .first->second;
    dataset.rows.push_back(std::move(training_row));
  }
  return dataset;
}

absl::StatusOr<std::shared_ptr<const Model>> TrainModel(
    const StudyDefinition& definition, const StudyState::TrainingInput& input,
    const Trainer& trainer, const Clock& clock, std::stop_token stop) {
  const absl::Duration start = clock.Elapsed();
  const Dataset dataset = MakeDataset(definition, input);
  const Rng rng =
      Rng::Derive(definition.seed(),
                  {kTrainingSeedUse, static_cast<uint64_t>(input.version)});
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<Predictor> predictor,
                           trainer.Train(dataset, rng, std::move(stop)));
  Model model;
  model.quality = predictor->quality();
  model.quality.set_model_version(input.version);
  model.quality.set_kind(std::string(predictor->kind()));
  model.quality.set_rows(static_cast<int64_t>(dataset.rows.size()));
  *model.quality.mutable_training_time() =
      DurationToProto(clock.Elapsed() - start);
  *model.quality.mutable_create_time() = TimeToProto(clock.Now());
  CUBICML_RETURN_IF_ERROR(CheckQuality(model.quality));
  model.predictor = std::move(predictor);
  return std::make_shared<const Model>(std::move(model));
}

}  // namespace cubicml
