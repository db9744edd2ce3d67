// SPDX-License-Identifier: Apache-2.0
//
// What turns gradients into new parameters after each step.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_PARAMETER_UPDATER_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_PARAMETER_UPDATER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

class ParameterUpdater {
 public:
  virtual ~ParameterUpdater() = default;

  // Applies the gradients that the parameters hold, then clears them in the
  // way that --zero_grad asks for.
  virtual void Update() = 0;
};

// --update_loop decides which implementation, --optimizer what it computes.
std::unique_ptr<ParameterUpdater> MakeParameterUpdater(
    const DlrmOptions& options, const std::vector<at::Tensor>& parameters);

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_PARAMETER_UPDATER_H_
