// SPDX-License-Identifier: Apache-2.0
//
// Who answers in a replay: the tuning service in this process, or a server.

#ifndef CUBICML_CLIENT_REPLAY_TUNER_H_
#define CUBICML_CLIENT_REPLAY_TUNER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cubicml/v1/tuning_service.pb.h"

namespace cubicml {

// The calls of the service that a replay needs, with its codes. Used by one
// thread at a time.
class Tuner {
 public:
  virtual ~Tuner() = default;

  virtual absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) = 0;
  virtual absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) = 0;
  virtual absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) = 0;
  virtual absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) = 0;

  // Learns from what was reported, now. A server does so by itself.
  virtual void Train() = 0;
};

// A service of its own that forgets everything when it dies. Deterministic:
// it trains in Train() only.
absl::StatusOr<std::unique_ptr<Tuner>> NewInProcessTuner();

// A running server at `address`.
absl::StatusOr<std::unique_ptr<Tuner>> NewRemoteTuner(
    const std::string& address);

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REPLAY_TUNER_H_
