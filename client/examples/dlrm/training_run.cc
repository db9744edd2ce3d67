// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/examples/dlrm/process_settings.h"
#include "client/examples/dlrm/trainer.h"

namespace cubicml::dlrm {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// The phases of one run, which share the trainer and the signal to stop.
class TrainingRun {
 public:
  TrainingRun(const DlrmOptions& options, const std::atomic<bool>& stop,
              std::ostream& progress)
      : options_(options),
        stop_(stop),
        progress_(progress),
        trainer_(options) {}

  // A loss at the end of a window of time would reward nothing but speed, so
  // it is measured where every configuration has seen the same samples.
  absl::StatusOr<double> MeasureLoss() {
    const auto start = SteadyClock::now();
    int64_t samples = 0;
    double train_loss = 0.0;
    while (samples < options_.loss_samples) {
      if (stop_) return absl::CancelledError("stopped while training");
      train_loss = trainer_.Step();
      samples += options_.batch_size;
      MaybeReport(samples, train_loss, SecondsSince(start));
    }
    const double loss = trainer_.HeldOutLoss();
    if (!std::isfinite(loss)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the held-out loss is not finite after ", samples,
                       " samples; --lr=", options_.lr, " is too high"));
    }
    progress_ << absl::StrFormat("held-out loss %.5f after %d samples\n", loss,
                                 samples);
    return loss;
  }

  absl::StatusOr<double> MeasureQps() {
    for (int64_t step = 0; step < options_.warmup_steps; ++step) {
      if (stop_) return absl::CancelledError("stopped while warming up");
      trainer_.Step();
    }
    const int64_t waiting_before = trainer_.SamplesWaiting();
    const auto start = SteadyClock::now();
    int64_t steps = 0;
    double seconds = 0.0;
    do {
      if (stop_) return absl::CancelledError("stopped while measuring");
      const double train_loss = trainer_.Step();
      ++steps;
      seconds = SecondsSince(start);
      MaybeReport(steps * options_.batch_size, train_loss, seconds);
    } while (!WindowIsOver(steps, seconds));
    // Samples that were generated before the window and not replaced in it are
    // a gift that no long training would get: a deep queue in front of a slow
    // loader would look fast.
    const int64_t trained = steps * options_.batch_size;
    const int64_t gift =
        std::max(int64_t{0}, waiting_before - trainer_.SamplesWaiting());
    progress_ << absl::StrFormat(
        "measured %d steps, %d samples (%d of them from before), %.3f s\n",
        steps, trained, gift, seconds);
    return static_cast<double>(std::max(int64_t{1}, trained - gift)) / seconds;
  }

 private:
  bool WindowIsOver(int64_t steps, double seconds) const {
    return (options_.seconds > 0.0 && seconds >= options_.seconds) ||
           (options_.steps > 0 && steps >= options_.steps);
  }

  // At most one line a second, so that writing it costs nothing.
  void MaybeReport(int64_t samples, double train_loss, double seconds) {
    const auto now = SteadyClock::now();
    if (now - last_report_ < std::chrono::seconds(1)) return;
    last_report_ = now;
    progress_ << absl::StrFormat(
        "%d samples, training loss %.4f, %.0f samples/s\n", samples, train_loss,
        static_cast<double>(samples) / seconds);
  }

  const DlrmOptions& options_;
  const std::atomic<bool>& stop_;
  std::ostream& progress_;
  Trainer trainer_;
  SteadyClock::time_point last_report_ = SteadyClock::now();
};

}  // namespace

absl::StatusOr<RunMetrics> RunTraining(const DlrmOptions& options,
                                       const std::atomic<bool>& stop,
                                       std::ostream& progress) {
  RunMetrics metrics;
  TrainingRun run(options, stop, progress);
  if (options.loss_samples > 0) {
    const absl::StatusOr<double> loss = run.MeasureLoss();
    if (!loss.ok()) return loss.status();
    metrics.loss = *loss;
  }
  const absl::StatusOr<double> qps = run.MeasureQps();
  if (!qps.ok()) return qps.status();
  metrics.qps = *qps;
  metrics.peak_memory_mib = PeakResidentMib();
  return metrics;
}

std::string FormatMetricLines(const RunMetrics& metrics) {
  std::string lines = absl::StrFormat("qps=%.1f\n", metrics.qps);
  if (metrics.loss) absl::StrAppendFormat(&lines, "loss=%.6f\n", *metrics.loss);
  absl::StrAppendFormat(&lines, "peak_memory_mib=%.1f\n",
                        metrics.peak_memory_mib);
  return lines;
}

absl::Status WriteMetricsFile(const RunMetrics& metrics,
                              const std::string& path) {
  nlohmann::json object = {{"qps", metrics.qps},
                           {"peak_memory_mib", metrics.peak_memory_mib}};
  if (metrics.loss) object["loss"] = *metrics.loss;
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::trunc);
  file << object.dump() << '\n';
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("--metrics_file: cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace cubicml::dlrm
