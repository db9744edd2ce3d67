// SPDX-License-Identifier: Apache-2.0
//
// From the measurements of a study to its next model.

#ifndef CUBICML_SERVER_CORE_MODEL_TRAINING_H_
#define CUBICML_SERVER_CORE_MODEL_TRAINING_H_

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "predictor/dataset.h"
#include "predictor/trainer.h"
#include "server/core/row_log.h"
#include "server/core/search_task.h"
#include "server/core/study_definition.h"
#include "server/core/study_state.h"

namespace cubicml {

// In the order of trials, groups numbered in the order of their first trial:
// the same for the same trials, however they arrived, but for the last bit of
// a bound that is a multiple of a mean.
Dataset MakeDataset(const StudyDefinition& definition,
                    const StudyState::TrainingInput& input);

// The trainer's codes; INTERNAL also for a model that is not finite.
// OUT_OF_RANGE for a model that is worse than none, as where the trials say
// little yet.
absl::StatusOr<std::shared_ptr<const Model>> TrainModel(
    const StudyDefinition& definition, const StudyState::TrainingInput& input,
    const Trainer& trainer, const Clock& clock, std::stop_token stop);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_MODEL_TRAINING_H_
