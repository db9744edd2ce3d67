// SPDX-License-Identifier: Apache-2.0
//
// A model as it is stored: the predictor's bytes, with what is needed to know
// whether they still fit the study.

#ifndef CUBICML_SERVER_CORE_MODEL_CHECKPOINT_H_
#define CUBICML_SERVER_CORE_MODEL_CHECKPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "predictor/trainer.h"
#include "server/core/search_task.h"
#include "server/core/study_definition.h"
#include "storage/study_store.h"

namespace cubicml {

StoredModel FormatModel(const StudyDefinition& definition, const Model& model);

// FAILED_PRECONDITION when the study's features have changed since, DATA_LOSS
// when the bytes are not a model.
absl::StatusOr<std::shared_ptr<const Model>> ParseModel(
    const StudyDefinition& definition, const Trainer& trainer,
    const StoredModel& stored);

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_MODEL_CHECKPOINT_H_
