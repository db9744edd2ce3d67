// SPDX-License-Identifier: Apache-2.0
//
// One optimizer step, and the loss on held-out samples.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_TRAINER_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "client/examples/dlrm/batch_loader.h"
#include "client/examples/dlrm/click_log.h"
#include "client/examples/dlrm/dlrm_model.h"
#include "client/examples/dlrm/dlrm_options.h"
#include "client/examples/dlrm/parameter_updater.h"
#include "client/examples/dlrm/worker_pool.h"

namespace cubicml::dlrm {

// For one thread. Methods throw what LibTorch throws, above all when memory
// runs out.
class Trainer {
 public:
  // REQUIRES: ParseDlrmOptions accepted `options`.
  explicit Trainer(const DlrmOptions& options);

  // Trains the next batch_size samples; returns their mean loss before it.
  double Step();

  // Mean loss over the held-out samples, which are the same in every run of a
  // shape.
  double HeldOutLoss() const;

  // Samples that were generated ahead and wait to be trained.
  int64_t SamplesWaiting() const;

 private:
  // Gradients of micro-batches one after the other, added up by LibTorch.
  double AccumulateGradients();
  // The same on several threads, each with every n-th micro-batch.
  double AccumulateGradientsInParallel();

  const DlrmOptions options_;
  const ClickLog log_;
  DlrmModel model_;
  const std::unique_ptr<ParameterUpdater> updater_;
  WorkerPool workers_;
  BatchLoader loader_;  // last: its threads use the members above
};

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_TRAINER_H_
