// SPDX-License-Identifier: Apache-2.0
//
// The training job that the quickstart tunes. Metrics go to standard output,
// one `name=value` a line; everything else goes to standard error. README.md
// lists flags and exit codes.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/dlrm/dlrm_options.h"
#include "client/examples/dlrm/process_settings.h"
#include "client/examples/dlrm/training_run.h"

namespace cubicml::dlrm {
namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

// The run looks at the flag between steps, which take well under a second. The
// alarm is for a step that does not end.
void StopOnSigterm() {
  struct sigaction on_term = {};
  on_term.sa_handler = [](int) {
    g_stop = true;
    alarm(2);
  };
  sigaction(SIGTERM, &on_term, nullptr);
  struct sigaction on_alarm = {};
  on_alarm.sa_handler = [](int) { _exit(kExitTerminated); };
  sigaction(SIGALRM, &on_alarm, nullptr);
}

int Fail(const absl::Status& status, int exit_code) {
  std::cerr << "dlrm_train: " << status.message() << '\n';
  return exit_code;
}

int Train(const DlrmOptions& options) {
  absl::Status status = ApplyProcessSettings(options);
  if (!status.ok()) return Fail(status, kExitFailure);
  const absl::StatusOr<RunMetrics> metrics =
      RunTraining(options, g_stop, std::cerr);
  if (absl::IsCancelled(metrics.status())) {
    return Fail(metrics.status(), kExitTerminated);
  }
  if (!metrics.ok()) return Fail(metrics.status(), kExitFailure);
  if (!options.metrics_file.empty()) {
    status = WriteMetricsFile(*metrics, options.metrics_file);
    if (!status.ok()) return Fail(status, kExitFailure);
  }
  std::cout << FormatMetricLines(*metrics);
  return kExitSuccess;
}

int Main(const std::vector<std::string>& args) {
  StopOnSigterm();
  const absl::StatusOr<DlrmOptions> options = ParseDlrmOptions(args);
  if (!options.ok()) return Fail(options.status(), kExitBadFlags);
  if (!options->help.empty()) {
    std::cout << options->help;
    return kExitSuccess;
  }
  try {
    return Train(*options);
  } catch (const std::exception& error) {
    // LibTorch appends a stack trace to its first line; a thread without room
    // for its stack only says that resources are unavailable.
    const std::string_view what = error.what();
    const bool out_of_memory = IsOutOfMemory(error);
    std::cerr << "dlrm_train: "
              << (out_of_memory ? "cannot allocate memory: " : "")
              << what.substr(0, what.find('\n')) << '\n';
    return out_of_memory ? kExitOutOfMemory : kExitFailure;
  }
}

}  // namespace
}  // namespace cubicml::dlrm

int main(int argc, char** argv) {
  return cubicml::dlrm::Main(std::vector<std::string>(argv + 1, argv + argc));
}
