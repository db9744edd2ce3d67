// SPDX-License-Identifier: Apache-2.0
//
// The trainer that the server uses.

#ifndef CUBICML_PREDICTOR_SURROGATE_TRAINER_H_
#define CUBICML_PREDICTOR_SURROGATE_TRAINER_H_

#include <memory>

#include "predictor/trainer.h"

namespace cubicml {

// Fits a linear model, a Gaussian process and, from enough rows on, an ensemble
// of perceptrons, and keeps what predicts held-out rows best.
std::unique_ptr<Trainer> NewSurrogateTrainer();

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_SURROGATE_TRAINER_H_
