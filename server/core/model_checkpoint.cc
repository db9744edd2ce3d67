// SPDX-License-Identifier: Apache-2.0

#include "server/core/model_checkpoint.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

constexpr absl::string_view kMagic = "cubicml-model 1 ";
constexpr size_t kFingerprintBytes = 16;

std::string FormatFingerprint(const StudyDefinition& definition) {
  return absl::StrCat(
      absl::Hex(definition.model_fingerprint(), absl::kZeroPad16));
}

}  // namespace

StoredModel FormatModel(const StudyDefinition& definition, const Model& model) {
  StoredModel stored;
  stored.quality = model.quality;
  stored.checkpoint = absl::StrCat(kMagic, FormatFingerprint(definition),
                                   model.predictor->Serialize());
  return stored;
}

absl::StatusOr<std::shared_ptr<const Model>> ParseModel(
    const StudyDefinition& definition, const Trainer& trainer,
    const StoredModel& stored) {
  absl::string_view bytes = stored.checkpoint;
  if (!absl::StartsWith(bytes, kMagic) ||
      bytes.size() < kMagic.size() + kFingerprintBytes) {
    return absl::DataLossError("the checkpoint is not one of a model");
  }
  bytes.remove_prefix(kMagic.size());
  if (bytes.substr(0, kFingerprintBytes) != FormatFingerprint(definition)) {
    return absl::FailedPreconditionError(
        "the features or metrics of the study have changed since the model "
        "was trained");
  }
  bytes.remove_prefix(kFingerprintBytes);
  CUBICML_ASSIGN_OR_RETURN(std::unique_ptr<Predictor> predictor,
                           trainer.Load(bytes));
  Model model;
  model.predictor = std::move(predictor);
  model.quality = stored.quality;
  return std::make_shared<const Model>(std::move(model));
}

}  // namespace cubicml
