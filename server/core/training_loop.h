// SPDX-License-Identifier: Apache-2.0
//
// The threads that train, and that end lapsed leases and forget old requests.

#ifndef CUBICML_SERVER_CORE_TRAINING_LOOP_H_
#define CUBICML_SERVER_CORE_TRAINING_LOOP_H_

#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/core/study_service.h"

namespace cubicml {

struct TrainingLoopOptions {
  // How often leases are looked at, and whether there is something to train;
  // results wake the training at once.
  absl::Duration interval = absl::Seconds(1);
  // Of the thread that trains, from 0 to 19.
  int niceness = 0;
};

// Runs from construction to destruction, which waits for at most the 50 ms in
// which a trainer notices the stop, and one look at the leases. Leases have a
// thread of their own: training may take minutes, and is done at lower
// priority.
class TrainingLoop {
 public:
  // `service` must outlive the loop.
  explicit TrainingLoop(StudyService* service,
                        const TrainingLoopOptions& options = {});
  ~TrainingLoop();
  TrainingLoop(const TrainingLoop&) = delete;
  TrainingLoop& operator=(const TrainingLoop&) = delete;

  // Stops and joins the threads; the destructor does the same.
  void Stop();

 private:
  void RunTraining(const std::stop_token& stop);
  void RunLeases(const std::stop_token& stop);
  void LookAtLeases();
  void ForgetRequests();

  StudyService* const service_;
  const TrainingLoopOptions options_;
  Mutex mu_;
  CondVar stopped_;
  std::jthread training_;  // last: they use the members above
  std::jthread leases_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_TRAINING_LOOP_H_
