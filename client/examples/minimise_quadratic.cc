// SPDX-License-Identifier: Apache-2.0
//
// The client library on one page: makes a study of two knobs, asks for
// configurations, "runs" them, reports, and prints the best one. The job is a
// formula, so the program takes no time and its best answer is known.
//
//   minimise_quadratic [HOST:PORT [TRIALS]]

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cubicml/client/tuning_client.h"

namespace {

using cubicml::TrialHandle;
using cubicml::TuningClient;
using cubicml::v1::Trial;

constexpr char kStudy[] = "minimise-quadratic";

// 1. What may be changed, and what is better. The default values are the
// baseline that every result is compared with.
cubicml::v1::Study MakeStudy() {
  cubicml::v1::Study study;
  study.set_display_name("Minimise (x - 3)^2 + (y + 1)^2");
  cubicml::v1::Parameter* x = study.add_parameters();
  x->set_name("x");
  x->mutable_integer()->set_min(-10);
  x->mutable_integer()->set_max(10);
  *x->mutable_default_value() = cubicml::MakeValue(0);
  cubicml::v1::Parameter* y = study.add_parameters();
  y->set_name("y");
  y->mutable_number()->set_min(-2);
  y->mutable_number()->set_max(2);
  y->mutable_number()->set_step(0.5);
  *y->mutable_default_value() = cubicml::MakeValue(0.0);
  // Never handed out: the job could not run there.
  study.add_constraints()->set_expression("x + y <= 8");
  cubicml::v1::Objective* loss = study.add_objectives();
  loss->mutable_metric()->set_name("loss");
  loss->set_goal(cubicml::v1::MINIMIZE);
  study.mutable_settings()->set_seed(1);
  return study;
}

// 2. One job: ask, run, report. A handle that is dropped on the way, by an
// early return, reports that the job was lost.
absl::Status RunOneTrial(TuningClient* client) {
  absl::StatusOr<TrialHandle> trial = client->StartTrial({.study = kStudy});
  if (!trial.ok()) return trial.status();
  const absl::StatusOr<int64_t> x = trial->Get<int64_t>("x");
  if (!x.ok()) return x.status();
  const absl::StatusOr<double> y = trial->Get<double>("y");
  if (!y.ok()) return y.status();
  if (*x < -8) {  // a configuration that does not work is a result, too
    return trial->Fail(Trial::OUT_OF_MEMORY, "x is too small").status();
  }
  const double dx = static_cast<double>(*x) - 3;
  const double dy = *y + 1;
  trial->Report(/*step=*/1, {{"loss", dx * dx}});
  return trial->Complete({{"loss", dx * dx + dy * dy}}).status();
}

absl::Status RunExample(const std::string& server, int trials) {
  absl::StatusOr<std::unique_ptr<TuningClient>> client =
      TuningClient::Create({.server = server});
  if (!client.ok()) return client.status();

  cubicml::v1::CreateStudyRequest create;
  create.set_study_id(kStudy);
  *create.mutable_study() = MakeStudy();
  const absl::StatusOr<cubicml::v1::Study> study =
      (*client)->CreateStudy(create);
  if (!study.ok()) return study.status();

  for (int i = 0; i < trials; ++i) {
    const absl::Status status = RunOneTrial(client->get());
    if (absl::IsOutOfRange(status)) break;  // everything has been tried
    if (!status.ok()) return status;
  }

  // 3. What came of it.
  cubicml::v1::ListOptimalTrialsRequest best;
  best.set_parent(study->name());
  best.set_page_size(1);
  const absl::StatusOr<cubicml::v1::ListOptimalTrialsResponse> optimal =
      (*client)->ListOptimalTrials(best);
  if (!optimal.ok()) return optimal.status();
  for (const Trial& trial : optimal->trials()) {
    std::cout << trial.name()
              << ": x=" << cubicml::FormatValue(trial.parameters().at("x"))
              << " y=" << cubicml::FormatValue(trial.parameters().at("y"))
              << " loss=" << cubicml::FormatNumber(trial.metrics().at("loss"))
              << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string server = argc > 1 ? argv[1] : "127.0.0.1:7264";
  const int trials = argc > 2 ? std::atoi(argv[2]) : 30;
  const absl::Status status = RunExample(server, trials);
  if (!status.ok()) {
    std::cerr << "minimise_quadratic: " << status << "\n";
    return 1;
  }
  return 0;
}
