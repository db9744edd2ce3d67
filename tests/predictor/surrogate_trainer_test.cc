// SPDX-License-Identifier: Apache-2.0

#include "predictor/surrogate_trainer.h"

#include "predictor/torch_trainer.h"
#include "tests/predictor/trainer_battery.h"
#include "tests/support/status_matchers.h"

namespace cubicml {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Torch, TrainerBattery,
    testing::Values(TrainerCase{"mlp", NewMlpTrainer, 0.65, true},
                    TrainerCase{"chosen", NewSurrogateTrainer, 0.7, true}),
    [](const auto& test) { return test.param.name; });

TEST(SurrogateTrainerTest, DoesWithoutNetworksWhereTheyHaveNothingToCompare) {
  Dataset dataset = MakeSynthetic({.rows = 220});
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    dataset.rows[i].group = static_cast<int>(i);
  }
  const auto model = NewSurrogateTrainer()->Train(dataset, Rng(1), {});
  ASSERT_THAT(model, IsOk());
  EXPECT_NE((*model)->kind(), "mlp-ensemble");
}

}  // namespace
}  // namespace cubicml
