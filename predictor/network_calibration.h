// SPDX-License-Identifier: Apache-2.0
//
// Makes a forecast of what networks that learnt to rank put out.

#ifndef CUBICML_PREDICTOR_NETWORK_CALIBRATION_H_
#define CUBICML_PREDICTOR_NETWORK_CALIBRATION_H_

#include "absl/status/statusor.h"
#include "predictor/network_regressor.h"
#include "predictor/regressor.h"

namespace cubicml {

// Network k of the ensemble has not seen fold k, so what it says of that fold
// is held out: from it come one slope for all members, the noise, and how much
// wider the truth is than the spread over the members.
// INTERNAL when an output is not finite.
absl::StatusOr<RegressionFit> CalibrateNetworks(
    const RegressionProblem& problem, NetworkEnsemble ensemble);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_NETWORK_CALIBRATION_H_
