// SPDX-License-Identifier: Apache-2.0
//
// What the end-to-end tests share: a real server on a database of its own, a
// study with a knob of every kind, and calls that say what came of them.

#ifndef CUBICML_TESTS_E2E_E2E_TEST_H_
#define CUBICML_TESTS_E2E_E2E_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "cubicml/v1/study.pb.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "cubicml/v1/tuning_service.pb.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace cubicml {

using TuningStub = v1::TuningService::Stub;

// Knobs: tp (integer list), batch (range with step), lr (number, log),
// kernel (category), sharding (vector of 3), vpp (active if pp > 1), pp.
// Context: gpus. Constraint: tp * pp <= gpus. Objective: qps; metric: memory.
v1::Study KnobsStudy();

// A valid configuration of KnobsStudy().
v1::Trial MeasuredTrial(int batch_step, double qps);

v1::Value IntegerValue(int64_t value);
v1::Value NumberValue(double value);
v1::Value StringValue(const std::string& value);

// The field that the details of an error name; empty: none.
std::string FieldOf(const grpc::Status& status);
// What the details ask the client to wait; zero: nothing.
int64_t RetryDelayMs(const grpc::Status& status);

class E2eTest : public ::testing::Test {
 protected:
  // (Re)starts the server on the test's database.
  void StartServer(std::vector<std::string> flags = {});

  // A call with a deadline that a healthy server never needs.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (TuningStub::*rpc)(grpc::ClientContext*,
                                                    const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    SetDeadline(&context);
    return (stub_.get()->*rpc)(&context, request, response);
  }
  static void SetDeadline(grpc::ClientContext* context);

  grpc::Status CreateStudy(const std::string& id, const v1::Study& study);
  grpc::Status Suggest(const std::string& study, const std::string& client,
                       int count, v1::SuggestTrialsResponse* response);
  grpc::Status Complete(const v1::Trial& trial, double qps);
  v1::Study GetStudy(const std::string& name);
  // Every trial, by ExportTrials.
  std::vector<v1::Trial> Export(const std::string& study);
  grpc::Status Import(const std::string& study,
                      const std::vector<v1::Trial>& trials,
                      v1::ImportTrialsResponse* response);

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<TuningStub> stub_;
};

}  // namespace cubicml

#endif  // CUBICML_TESTS_E2E_E2E_TEST_H_
