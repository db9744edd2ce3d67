// SPDX-License-Identifier: Apache-2.0
//
// Training of the perceptron ensemble. The only file that includes LibTorch's
// headers is torch_trainer.cc.

#ifndef CUBICML_PREDICTOR_TORCH_TRAINER_H_
#define CUBICML_PREDICTOR_TORCH_TRAINER_H_

#include <cstddef>
#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "predictor/regressor.h"
#include "predictor/trainer.h"

namespace cubicml {

// More rows than this add time and no quality.
inline constexpr size_t kMaxNetworkRows = 10'000;

// Trains one network for each fold, without the rows of the fold, to order the
// rows of each group (logistic loss on pairs). Afterwards the outputs are
// scaled to the targets by what the networks say of their held-out rows.
// Deterministic: weights come from `rng`, and one thread does the work.
// CANCELLED when `stop` was requested; INTERNAL when LibTorch fails or a weight
// is not finite.
absl::StatusOr<RegressionFit> FitNetworks(const RegressionProblem& problem,
                                          Rng rng, const std::stop_token& stop);

// Always the ensemble, however few the rows: to compare with. The server uses
// NewSurrogateTrainer().
std::unique_ptr<Trainer> NewMlpTrainer();

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TORCH_TRAINER_H_
