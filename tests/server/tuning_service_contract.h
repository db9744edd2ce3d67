// SPDX-License-Identifier: Apache-2.0
//
// What cubicml.v1.TuningService must do, wherever it is called: the domain on a
// store in memory and on SQLite, and the whole way through client, wire and
// server. A way is put to the test by
//   INSTANTIATE_TEST_SUITE_P(Mine, TuningServiceContractTest,
//                            ::testing::Values(TuningServiceFactory{...}),
//                            TuningServiceFactoryName);
// All of them must refuse alike: the same code, and the same field by name.

#ifndef CUBICML_TESTS_SERVER_TUNING_SERVICE_CONTRACT_H_
#define CUBICML_TESTS_SERVER_TUNING_SERVICE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/field_error.h"
#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace cubicml {

// The calls of the service, streams as vectors, and its clock.
class TuningServiceUnderTest {
 public:
  virtual ~TuningServiceUnderTest() = default;

  virtual absl::StatusOr<v1::Study> CreateStudy(
      const v1::CreateStudyRequest& request) = 0;
  virtual absl::StatusOr<v1::Study> GetStudy(
      const v1::GetStudyRequest& request) = 0;
  virtual absl::StatusOr<v1::ListStudiesResponse> ListStudies(
      const v1::ListStudiesRequest& request) = 0;
  virtual absl::StatusOr<v1::Study> UpdateStudy(
      const v1::UpdateStudyRequest& request) = 0;
  virtual absl::Status DeleteStudy(const v1::DeleteStudyRequest& request) = 0;
  virtual absl::StatusOr<v1::SuggestTrialsResponse> SuggestTrials(
      const v1::SuggestTrialsRequest& request) = 0;
  virtual absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request) = 0;
  virtual absl::StatusOr<v1::Trial> CompleteTrial(
      const v1::CompleteTrialRequest& request) = 0;
  virtual absl::StatusOr<v1::Trial> CancelTrial(
      const v1::CancelTrialRequest& request) = 0;
  virtual absl::StatusOr<v1::ImportTrialsResponse> ImportTrials(
      const std::string& parent, const std::vector<v1::Trial>& trials) = 0;
  virtual absl::StatusOr<v1::Trial> GetTrial(
      const v1::GetTrialRequest& request) = 0;
  virtual absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request) = 0;
  virtual absl::StatusOr<std::vector<v1::Trial>> ExportTrials(
      const v1::ExportTrialsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListOptimalTrialsResponse> ListOptimalTrials(
      const v1::ListOptimalTrialsRequest& request) = 0;
  virtual absl::StatusOr<v1::PredictResponse> Predict(
      const v1::PredictRequest& request) = 0;

  // Moves the service's clock. Leases that lapse may end a little later, by a
  // thread of the service: wait for it.
  virtual void PassTime(absl::Duration duration) = 0;
};

struct TuningServiceFactory {
  std::string name;  // of the instance in test names
  // Makes a service without studies. What it needs besides, it owns.
  std::function<std::unique_ptr<TuningServiceUnderTest>()> make;
};

inline std::string TuningServiceFactoryName(
    const ::testing::TestParamInfo<TuningServiceFactory>& info) {
  return info.param.name;
}

// Of a Status or StatusOr: INVALID_ARGUMENT about this field of the request.
MATCHER_P(RefusesField, field, "") {
  const absl::Status& status = status_matchers_internal::GetStatus(arg);
  *result_listener << "which is " << status.ToString();
  return absl::IsInvalidArgument(status) && FieldNamedBy(status) == field;
}

class TuningServiceContractTest
    : public ::testing::TestWithParam<TuningServiceFactory> {
 protected:
  void SetUp() override {
    service_ = GetParam().make();
    ASSERT_NE(service_, nullptr);
  }

  // ---- Calls that must succeed; the test fails when they do not ----

  // studies/ID; by default the one of PlainStudy(): x and y from 0 to 15,
  // maximises score.
  v1::Study Create(const std::string& id);
  v1::Study Create(const std::string& id, const v1::Study& study);
  v1::Study GetStudy(const std::string& id);
  // As many as asked for; empty ones when it fails.
  std::vector<v1::Trial> Suggest(const std::string& id, int count = 1,
                                 const std::string& client_id = "");
  v1::Trial GetTrial(const std::string& name);
  // What is exported, by number.
  std::vector<v1::Trial> Export(const std::string& id,
                                const std::string& filter = "");
  // Ids of all studies, page by page.
  std::vector<std::string> ListStudyIds(const std::string& filter,
                                        const std::string& order_by,
                                        int page_size);
  // All trials, page by page.
  std::vector<v1::Trial> ListTrials(const std::string& id,
                                    const std::string& filter,
                                    const std::string& order_by, int page_size);
  v1::ImportTrialsResponse Import(const std::string& id,
                                  const std::vector<v1::Trial>& trials);

  // A study with twelve trials of all kinds: measured, with equal objectives,
  // with times before those of their neighbours, active, infeasible. Returns
  // them by number.
  std::vector<v1::Trial> CreateMixed(const std::string& id);

  // ---- Calls that may fail ----

  absl::StatusOr<v1::Trial> Complete(
      const std::string& name, const std::map<std::string, double>& metrics,
      const std::string& client_id = "", const std::string& request_id = "");
  absl::StatusOr<v1::Trial> End(const std::string& name, v1::Trial::State state,
                                v1::Trial::Reason reason);
  absl::StatusOr<v1::Trial> Cancel(const std::string& name,
                                   const std::string& request_id = "");
  absl::Status Delete(const std::string& id, bool force = false,
                      const std::string& request_id = "");

  // A measurement of PlainStudy() to import.
  static v1::Trial Measured(int64_t x, int64_t y, double score);

  std::unique_ptr<TuningServiceUnderTest> service_;
};

// A study whose knobs, context and metrics are of every type.
v1::Study TypedStudy();

std::vector<std::string> NamesOf(const std::vector<v1::Trial>& trials);

}  // namespace cubicml

#endif  // CUBICML_TESTS_SERVER_TUNING_SERVICE_CONTRACT_H_
