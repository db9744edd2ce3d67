// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_trainer.h"

#include "predictor/kernel_fit.h"
#include "predictor/kernel_regressor.h"
#include "predictor/linear_regressor.h"
#include "predictor/single_kind_trainer.h"

namespace cubicml {

HeadOptions KernelHeads() {
  return {{FitKernel, FitSparseKernel, FitLinear},
          kMaxKernelRows,
          {{FitKernel, kMaxKernelRows / 2}, {FitLinear, kMaxLinearRows}}};
}

std::unique_ptr<Trainer> NewKernelTrainer() {
  return NewSingleKindTrainer(
      {"gaussian-process",
       [](const RegressionProblem& problem, Rng, const std::stop_token& stop) {
         return FitKernel(problem, stop);
       },
       kMaxKernelRows, ScoreScale::kShareOfBest},
      KernelHeads());
}

}  // namespace cubicml
