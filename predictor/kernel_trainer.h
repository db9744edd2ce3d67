// SPDX-License-Identifier: Apache-2.0
//
// The trainer of the tens of rows in which most of a search happens.

#ifndef CUBICML_PREDICTOR_KERNEL_TRAINER_H_
#define CUBICML_PREDICTOR_KERNEL_TRAINER_H_

#include <memory>

#include "predictor/surrogate_model.h"
#include "predictor/trainer.h"

namespace cubicml {

// Heads of Gaussian processes or linear models, feasibility likewise: what goes
// with any score.
HeadOptions KernelHeads();

// Gaussian processes for everything, over a sample of the rows where there are
// many.
std::unique_ptr<Trainer> NewKernelTrainer();

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_KERNEL_TRAINER_H_
