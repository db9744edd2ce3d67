// SPDX-License-Identifier: Apache-2.0

#include "tests/storage/example_resources.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace cubicml {

v1::Study ExampleStudy(absl::string_view id) {
  v1::Study study;
  study.set_name(absl::StrCat("studies/", id));
  study.set_display_name(absl::StrCat("Study ", id));
  v1::Parameter* parameter = study.add_parameters();
  parameter->set_name("tp");
  parameter->mutable_integer()->add_values(1);
  parameter->mutable_integer()->add_values(2);
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name("qps");
  objective->set_goal(v1::MAXIMIZE);
  study.add_metrics()->set_name("memory_gib");
  (*study.mutable_labels())["team"] = "ads";
  return study;
}

v1::Trial ExampleTrial(uint64_t seed) {
  v1::Trial trial;
  trial.set_state(v1::Trial::ACTIVE);
  auto& parameters = *trial.mutable_parameters();
  parameters["tp"].set_int64_value(static_cast<int64_t>(seed % 8));
  parameters["lr"].set_double_value(0.5 + static_cast<double>(seed));
  parameters["kind"].set_string_value(absl::StrCat("k\"\\\n", seed));
  parameters["flag"].set_bool_value(seed % 2 == 0);
  auto* list = parameters["sharding"].mutable_list_value();
  list->add_values()->set_string_value("full");
  list->add_values()->set_int64_value(-1);
  (*trial.mutable_context())["gpus"].set_int64_value(64);
  trial.set_client_id(absl::StrCat("job-", seed));
  trial.set_attempt(1);
  trial.mutable_suggestion()->set_source(v1::Trial::SEARCH);
  trial.mutable_suggestion()->set_model_version(3);
  trial.mutable_suggestion()->set_seed(seed);
  trial.mutable_suggestion()->set_searcher("exhaustive");
  (*trial.mutable_labels())["run"] = absl::StrCat(seed);
  return trial;
}

int64_t NumberOf(const v1::Trial& trial) {
  int64_t number = 0;
  const size_t slash = trial.name().rfind('/');
  CUBICML_CHECK(absl::SimpleAtoi(trial.name().substr(slash + 1), &number));
  return number;
}

StudyStore::TrialMutation SucceedWith(double qps) {
  return [qps](v1::Trial* trial) {
    trial->set_state(v1::Trial::SUCCEEDED);
    (*trial->mutable_metrics())["qps"] = qps;
    return absl::OkStatus();
  };
}

}  // namespace cubicml
