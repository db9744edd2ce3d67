// SPDX-License-Identifier: Apache-2.0
//
// Training is a function of (data, seed): the same rows and generator give the
// same predictor, byte for byte, on the same machine.

#ifndef CUBICML_PREDICTOR_TRAINER_H_
#define CUBICML_PREDICTOR_TRAINER_H_

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/rng.h"
#include "predictor/dataset.h"
#include "predictor/predictor.h"

namespace cubicml {

// Immutable and thread-safe.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // FAILED_PRECONDITION  too few rows to learn anything (fewer than three, or
  //                      no two different feasible ones)
  // INVALID_ARGUMENT     a feature or weight is not finite
  // CANCELLED            `stop` was requested; polled at least every 50 ms
  // INTERNAL             the numeric library failed, or the result is not
  // finite
  virtual absl::StatusOr<std::unique_ptr<Predictor>> Train(
      const Dataset& dataset, Rng rng, std::stop_token stop) const = 0;

  // The inverse of Predictor::Serialize for every kind that this trainer makes.
  // DATA_LOSS for bytes that it did not write; never crashes on any bytes.
  virtual absl::StatusOr<std::unique_ptr<Predictor>> Load(
      absl::string_view checkpoint) const = 0;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TRAINER_H_
