// SPDX-License-Identifier: Apache-2.0
//
// The real program `cubicml` against a server in this process.

#ifndef CUBICML_TESTS_CLIENT_CLI_PROGRAM_TEST_SUPPORT_H_
#define CUBICML_TESTS_CLIENT_CLI_PROGRAM_TEST_SUPPORT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/fake_tuning_service.h"
#include "tests/client/running_program.h"
#include "tests/support/temp_dir.h"

namespace cubicml {

class ProgramTest : public ::testing::Test {
 protected:
  struct Result {
    int code;
    std::string out;
    std::string err;
  };

  ProgramTest() {
    environment_["CUBICML_SERVER"] = server_->address();
    environment_["XDG_CACHE_HOME"] = dir_.PathOf("cache");
    environment_["TMPDIR"] = dir_.path();
  }

  // The study "example", without going through the program.
  void CreateExample() {
    v1::CreateStudyRequest request;
    request.set_study_id("example");
    *request.mutable_study() = ExampleStudy();
    v1::Study response;
    ASSERT_TRUE(service_.CreateStudy(nullptr, &request, &response).ok());
  }

  std::unique_ptr<RunningProgram> Start(std::vector<std::string> arguments,
                                        const std::string& input = "") {
    arguments.insert(arguments.begin(), CUBICML_PROGRAM);
    return std::make_unique<RunningProgram>(arguments, environment_, input);
  }

  Result Run(const std::vector<std::string>& arguments,
             const std::string& input = "") {
    const std::unique_ptr<RunningProgram> program = Start(arguments, input);
    const int code = program->Wait();
    return {code, program->out(), program->err()};
  }

  // The server goes away, and comes back to the same place.
  void StopServer() {
    port_ = server_->port();
    server_.reset();
  }
  void RestartServer() { server_.emplace(&service_, port_); }

  TempDir dir_;
  FakeTuningService service_;
  std::optional<FakeServer> server_{&service_};
  std::map<std::string, std::string> environment_;

 private:
  int port_ = 0;
};

// Compares with tests/golden/NAME, or writes it when UPDATE_GOLDEN=1.
void ExpectGolden(const std::string& name, const std::string& text);

}  // namespace cubicml

#endif  // CUBICML_TESTS_CLIENT_CLI_PROGRAM_TEST_SUPPORT_H_
