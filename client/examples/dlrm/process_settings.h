// SPDX-License-Identifier: Apache-2.0
//
// What holds for the whole process and is set once, before the first tensor.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_PROCESS_SETTINGS_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_PROCESS_SETTINGS_H_

#include <exception>

#include "absl/status/status.h"
#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

// Sets malloc's thresholds, LibTorch's threads and the memory limit.
// UNAVAILABLE: the system refused one; the message names the flag.
absl::Status ApplyProcessSettings(const DlrmOptions& options);

// Highest resident memory so far, in MiB.
double PeakResidentMib();

// Whether the exception says that memory, or a thread's stack, could not be
// had. LibTorch throws its general error with a text, so the text decides.
bool IsOutOfMemory(const std::exception& error);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_PROCESS_SETTINGS_H_
