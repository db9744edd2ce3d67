// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_trainer.h"
#include "predictor/linear_trainer.h"
#include "tests/predictor/trainer_battery.h"

namespace cubicml {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Pure, TrainerBattery,
    testing::Values(TrainerCase{"linear", NewLinearTrainer, 0.6, false},
                    TrainerCase{"gp", NewKernelTrainer, 0.75, true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cubicml
