// SPDX-License-Identifier: Apache-2.0
//
// The trainer of the cold start, and of builds without LibTorch.

#ifndef CUBICML_PREDICTOR_LINEAR_TRAINER_H_
#define CUBICML_PREDICTOR_LINEAR_TRAINER_H_

#include <memory>

#include "predictor/trainer.h"

namespace cubicml {

// Bayesian ridge regression for everything.
std::unique_ptr<Trainer> NewLinearTrainer();

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_LINEAR_TRAINER_H_
