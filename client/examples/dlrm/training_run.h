// SPDX-License-Identifier: Apache-2.0
//
// A whole run: train, measure the loss, warm up, measure the speed.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_TRAINING_RUN_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_TRAINING_RUN_H_

#include <atomic>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

struct RunMetrics {
  // Samples per second of wall time, over whole optimizer steps.
  double qps = 0.0;
  // Held-out loss after --loss_samples training samples; absent when 0.
  std::optional<double> loss;
  // Highest resident memory of the process.
  double peak_memory_mib = 0.0;
};

// Writes lines of progress to `progress`. CANCELLED: `stop` became true.
// FAILED_PRECONDITION: the loss is not finite, the learning rate is too high.
// Throws what LibTorch throws, above all when memory runs out.
absl::StatusOr<RunMetrics> RunTraining(const DlrmOptions& options,
                                       const std::atomic<bool>& stop,
                                       std::ostream& progress);

// One line `name=value` for each metric.
std::string FormatMetricLines(const RunMetrics& metrics);

// Writes the metrics as one JSON object, all or nothing: a reader never sees a
// half-written file. UNAVAILABLE: the file cannot be written.
absl::Status WriteMetricsFile(const RunMetrics& metrics,
                              const std::string& path);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_TRAINING_RUN_H_
