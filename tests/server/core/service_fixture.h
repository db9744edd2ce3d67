// SPDX-License-Identifier: Apache-2.0
//
// A StudyService on a store in memory, a clock that the test moves and a
// trainer without LibTorch, and the few calls that most tests start with.

#ifndef CUBICML_TESTS_SERVER_CORE_SERVICE_FIXTURE_H_
#define CUBICML_TESTS_SERVER_CORE_SERVICE_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "predictor/trainer.h"
#include "server/core/study_service.h"
#include "storage/study_store.h"
#include "tests/support/fake_clock.h"

namespace cubicml {

// Parses text format; a mistake in the test ends it.
v1::Study ParseStudy(const std::string& text);
// Two integer knobs tied by a constraint to a context, a category and a vector;
// maximises qps.
v1::Study TrainingStudy();
// The same with constraints: memory at most 76, loss at most 1.1 * baseline.
v1::Study BoundedStudy();
// Knobs without constraints or context: x and y from 0 to 15, maximises score.
v1::Study PlainStudy();

v1::Value IntegerValue(int64_t value);

class ServiceFixture {
 public:
  // The store must outlive the fixture.
  explicit ServiceFixture(StudyStore* store, FakeClock* clock);

  StudyService& service() { return *service_; }
  // A new service on the same store, as after a restart of the process.
  void Restart();

  v1::Study Create(const std::string& study_id, v1::Study study);
  // For the context gpus = 8 where the study has one.
  v1::SuggestTrialsRequest MakeRequest(const std::string& study_id,
                                       int count = 1);
  absl::StatusOr<v1::SuggestTrialsResponse> Suggest(
      const v1::SuggestTrialsRequest& request);
  // One trial; the test fails when there is none.
  v1::Trial SuggestOne(const std::string& study_id,
                       const std::string& client_id = "");
  absl::StatusOr<v1::Trial> Complete(
      const std::string& trial, const std::map<std::string, double>& metrics,
      const std::string& client_id = "");
  absl::StatusOr<v1::Trial> End(const std::string& trial,
                                v1::Trial::State state,
                                v1::Trial::Reason reason);
  absl::StatusOr<v1::Trial> Get(const std::string& trial);
  int Train();

 private:
  StudyStore* const store_;
  FakeClock* const clock_;
  const std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<StudyService> service_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_SERVER_CORE_SERVICE_FIXTURE_H_
