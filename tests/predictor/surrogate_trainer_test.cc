// SPDX-License-Identifier: Apache-2.0

#include "predictor/surrogate_trainer.h"

#include "predictor/torch_trainer.h"
#include "tests/predictor/trainer_battery.h"

namespace cubicml {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Torch, TrainerBattery,
    testing::Values(TrainerCase{"mlp", NewMlpTrainer, 0.65, true},
                    TrainerCase{"chosen", NewSurrogateTrainer, 0.7, true}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cubicml
