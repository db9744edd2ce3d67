// SPDX-License-Identifier: Apache-2.0
//
// What the service costs above an empty call, in one run: the real server as a
// process of its own, asynchronous clients in this one, on the same processor.
//
//   rpc_bench [--seconds S] [--history N] > table.md
//
// Calls that are measured:
//   check     grpc.health.v1.Health/Check: an empty call of the same gRPC
//             server; it does not go through the workers.
//   dispatch  GetStudy of a name that is none: through queue and worker and
//             back, without touching the domain or the disk.
//   suggest   SuggestTrials of one trial of a study with a model; stored.
//   complete  CompleteTrial; durable.
// "training" is the same while the surrogates of other studies are trained
// without a pause. The study whose trials are completed suggests at random, so
// that its own results cause no training.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "cubicml/v1/tuning_service.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "tests/bench/closed_loop.h"
#include "tests/support/http_get.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace cubicml {
namespace {

constexpr char kServicePath[] = "/cubicml.v1.TuningService/";
constexpr int kChannels = 16;
const int kClientCounts[] = {1, 16, 64};
const char* const kCalls[] = {"check", "dispatch", "suggest", "complete"};

void DieUnless(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "rpc_bench: %s\n", what.c_str());
  std::exit(1);
}

grpc::ByteBuffer ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToText(const grpc::ByteBuffer& bytes) {
  std::string text;
  std::vector<grpc::Slice> slices;
  if (bytes.Valid() && bytes.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return text;
}

// 6 knobs and some 10^12 configurations: nothing runs out.
v1::Study BenchStudy(v1::Algorithm algorithm) {
  v1::Study study;
  for (int i = 0; i < 6; ++i) {
    v1::Parameter* parameter = study.add_parameters();
    parameter->set_name(absl::StrCat("k", i));
    parameter->mutable_integer()->set_min(1);
    parameter->mutable_integer()->set_max(100);
  }
  v1::Objective* objective = study.add_objectives();
  objective->mutable_metric()->set_name("qps");
  objective->set_goal(v1::MAXIMIZE);
  study.mutable_settings()->set_algorithm(algorithm);
  study.mutable_settings()->set_seed(1);
  return study;
}

v1::Trial RandomTrial(Rng* rng) {
  v1::Trial trial;
  trial.set_state(v1::Trial::SUCCEEDED);
  double qps = 1000;
  for (int i = 0; i < 6; ++i) {
    const int64_t value = 1 + static_cast<int64_t>(rng->Below(100));
    (*trial.mutable_parameters())[absl::StrCat("k", i)].set_int64_value(value);
    qps -= static_cast<double>((value - 40) * (value - 40)) * 0.01;
  }
  (*trial.mutable_metrics())["qps"] = qps;
  return trial;
}

// The server, and everything that is done to it.
class Bench {
 public:
  explicit Bench(const std::string& db_path) {
    ServerProcess::Options options;
    options.db_path = db_path;
    options.log_path = db_path + ".log";
    const SystemClock clock;
    const absl::Duration start = clock.Elapsed();
    auto server = ServerProcess::Start(options);
    start_time_ = clock.Elapsed() - start;
    DieUnless(server.ok(), server.status().ToString());
    server_ = *std::move(server);
    stub_ = server_->NewStub();
    for (int i = 0; i < kChannels; ++i) {
      channels_.push_back(server_->NewChannel());
    }
  }
  ~Bench() { StopTraining(); }

  absl::Duration start_time() const { return start_time_; }
  ServerProcess* server() { return server_.get(); }

  void CreateStudy(const std::string& id, v1::Algorithm algorithm) {
    v1::CreateStudyRequest request;
    request.set_study_id(id);
    *request.mutable_study() = BenchStudy(algorithm);
    grpc::ClientContext context;
    v1::Study study;
    const grpc::Status status = stub_->CreateStudy(&context, request, &study);
    DieUnless(status.ok(), status.error_message());
  }

  void Import(const std::string& id, int64_t trials, uint64_t seed) {
    Rng rng(seed);
    grpc::ClientContext context;
    v1::ImportTrialsResponse response;
    const auto writer = stub_->ImportTrials(&context, &response);
    for (int64_t done = 0; done < trials;) {
      v1::ImportTrialsRequest request;
      if (done == 0) request.set_parent("studies/" + id);
      for (int i = 0; i < 500 && done < trials; ++i, ++done) {
        *request.add_trials() = RandomTrial(&rng);
      }
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    DieUnless(status.ok() && response.imported() == trials,
              absl::StrCat("import: ", status.error_message(), " ",
                           response.ShortDebugString().substr(0, 300)));
  }

  // Until the study has a model and no training is under way.
  void WaitForModel(const std::string& id) {
    v1::GetStudyRequest request;
    request.set_name("studies/" + id);
    v1::Study study;
    DieUnless(
        WaitUntil(absl::Seconds(120),
                  [&] {
                    grpc::ClientContext context;
                    return stub_->GetStudy(&context, request, &study).ok() &&
                           study.progress().surrogate().model_version() > 0;
                  }),
        "no model came for " + id);
  }

  // Feeds other studies with results, so that the trainer never rests.
  void StartTraining() {
    for (const char* id : {"noise-a", "noise-b"}) {
      CreateStudy(id, v1::DEFAULT);
      Import(id, 1500, 3);
    }
    feeding_ = true;
    feeder_ = std::thread([this] {
      uint64_t seed = 100;
      while (feeding_) {
        Import("noise-a", 100, ++seed);
        Import("noise-b", 100, ++seed);
        WaitUntil(absl::Milliseconds(500), [this] { return !feeding_; });
      }
    });
  }
  void StopTraining() {
    feeding_ = false;
    if (feeder_.joinable()) feeder_.join();
  }

  // Models trained since the start.
  double CountTrainings() const {
    const std::string text = HttpGet(server_->metrics_port(), "/metrics").body;
    const std::string name =
        "cubicml_surrogate_training_duration_seconds_count ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::atof(&text[at + name.size()]);
  }

  BenchResult Measure(const std::string& call, int clients,
                      absl::Duration duration, const std::string& suffix) {
    if (call == "check") {
      return Run(
          clients, duration,
          {"/grpc.health.v1.Health/Check", [](grpc::ByteBuffer* request) {
             *request = ToBytes("");
             return true;
           }});
    }
    if (call == "dispatch") {
      v1::GetStudyRequest request;
      request.set_name("x");
      BenchCall dispatch{
          absl::StrCat(kServicePath, "GetStudy"),
          [text = request.SerializeAsString()](grpc::ByteBuffer* bytes) {
            *bytes = ToBytes(text);
            return true;
          }};
      dispatch.expected_code = 3;
      return Run(clients, duration, dispatch);
    }
    if (call == "suggest") {
      return Run(clients, duration, SuggestCall("model" + suffix, 1, nullptr));
    }
    CollectTrials("random" + suffix);
    return Run(clients, duration, CompleteCall());
  }

 private:
  BenchResult Run(int clients, absl::Duration duration, const BenchCall& call) {
    const BenchResult result =
        RunClosedLoop(channels_, clients, duration, call);
    DieUnless(result.errors == 0,
              absl::StrCat(call.path, ": ", result.errors, " errors, first ",
                           result.first_error));
    return result;
  }

  BenchCall SuggestCall(const std::string& id, int count,
                        std::vector<std::string>* names) {
    v1::SuggestTrialsRequest request;
    request.set_parent("studies/" + id);
    request.set_count(count);
    BenchCall call{
        absl::StrCat(kServicePath, "SuggestTrials"),
        [text = request.SerializeAsString()](grpc::ByteBuffer* bytes) {
          *bytes = ToBytes(text);
          return true;
        }};
    call.on_response = [this, names](const grpc::ByteBuffer& bytes) {
      v1::SuggestTrialsResponse response;
      DieUnless(
          response.ParseFromString(ToText(bytes)) && response.trials_size() > 0,
          "a suggestion without a trial: " + response.ShortDebugString());
      if (names == nullptr) return;
      MutexLock lock(&mu_);
      for (const v1::Trial& trial : response.trials()) {
        names->push_back(trial.name());
      }
    };
    return call;
  }

  // Trials to be completed: as many as 3 seconds at 10,000 a second take.
  void CollectTrials(const std::string& id) {
    constexpr size_t kTrials = 30000;
    BenchCall call = SuggestCall(id, 100, &held_);
    call.next_request = [this,
                         next = call.next_request](grpc::ByteBuffer* bytes) {
      MutexLock lock(&mu_);
      return held_.size() < kTrials && next(bytes);
    };
    RunClosedLoop(channels_, 4, absl::Seconds(60), call);
  }

  BenchCall CompleteCall() {
    BenchCall call{absl::StrCat(kServicePath, "CompleteTrial"), {}};
    call.next_request = [this](grpc::ByteBuffer* bytes) {
      v1::CompleteTrialRequest request;
      request.set_state(v1::Trial::SUCCEEDED);
      (*request.mutable_metrics())["qps"] = 500;
      {
        MutexLock lock(&mu_);
        if (held_.empty()) return false;
        request.set_name(held_.back());
        held_.pop_back();
      }
      *bytes = ToBytes(request.SerializeAsString());
      return true;
    };
    return call;
  }

  absl::Duration start_time_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::TuningService::Stub> stub_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::atomic<bool> feeding_{false};
  std::thread feeder_;
  Mutex mu_;
  std::vector<std::string> held_ ABSL_GUARDED_BY(mu_);
};

// Everything that was measured, by history, load, call and clients.
class Report {
 public:
  void Add(int64_t history, const std::string& load, const std::string& call,
           int clients, const BenchResult& result) {
    results_[Key(history, load, call, clients)] = result;
    std::printf("| %lld | %s | %s | %d | %.0f | %.2f | %.2f |\n",
                static_cast<long long>(history), load.c_str(), call.c_str(),
                clients, result.rate, Ms(result.p50), Ms(result.p99));
    std::fflush(stdout);
  }
  const BenchResult& Get(int64_t history, const std::string& load,
                         const std::string& call, int clients) const {
    return results_.at(Key(history, load, call, clients));
  }
  static double Ms(absl::Duration duration) {
    return absl::ToDoubleMilliseconds(duration);
  }

 private:
  static std::string Key(int64_t history, const std::string& load,
                         const std::string& call, int clients) {
    return absl::StrCat(history, " ", load, " ", call, " ", clients);
  }
  std::map<std::string, BenchResult> results_;
};

// All loads and client counts on one database of `history` trials a study.
void MeasureHistory(int64_t history, absl::Duration duration,
                    const std::string& db_path, Report* report) {
  Bench bench(db_path);
  // A short history would no longer be one after the first measurement, so
  // that each has its own studies.
  const bool shared = history > 10'000;
  const auto suffix = [shared](const std::string& load, int clients) {
    return shared ? std::string("-all") : absl::StrCat("-", load, clients);
  };
  std::map<std::string, bool> created;
  for (const char* load : {"idle", "training"}) {
    for (const int clients : kClientCounts) {
      const std::string name = suffix(load, clients);
      if (created[name]) continue;
      created[name] = true;
      for (const auto& [id, algorithm] :
           {std::pair<std::string, v1::Algorithm>{"model" + name, v1::DEFAULT},
            std::pair<std::string, v1::Algorithm>{"random" + name,
                                                  v1::RANDOM}}) {
        bench.CreateStudy(id, algorithm);
        bench.Import(id, history, 1);
      }
      bench.WaitForModel("model" + name);
    }
  }
  for (const char* load : {"idle", "training"}) {
    if (load == std::string("training")) bench.StartTraining();
    const double trainings = bench.CountTrainings();
    for (const int clients : kClientCounts) {
      for (const char* call : kCalls) {
        report->Add(
            history, load, call, clients,
            bench.Measure(call, clients, duration, suffix(load, clients)));
      }
    }
    std::fprintf(stderr, "%lld trials, %s: %.0f models trained\n",
                 static_cast<long long>(history), load,
                 bench.CountTrainings() - trainings);
  }
}

void PrintRatios(const Report& report, int64_t small, int64_t large) {
  std::printf("\n| ratio | %lld trials | %lld trials |\n|---|---|---|\n",
              static_cast<long long>(small), static_cast<long long>(large));
  for (const char* base : {"check", "dispatch"}) {
    for (const char* call : {"suggest", "complete"}) {
      for (const int clients : kClientCounts) {
        std::printf("| rate of %s / %s, %d clients |", call, base, clients);
        for (const int64_t history : {small, large}) {
          std::printf(" %.2f |",
                      report.Get(history, "idle", call, clients).rate /
                          report.Get(history, "idle", base, clients).rate);
        }
        std::printf("\n");
      }
    }
  }
  for (const char* call : kCalls) {
    for (const int clients : kClientCounts) {
      std::printf("| p99 of %s, training / idle, %d clients |", call, clients);
      for (const int64_t history : {small, large}) {
        std::printf(" %.2f |",
                    absl::FDivDuration(
                        report.Get(history, "training", call, clients).p99,
                        report.Get(history, "idle", call, clients).p99));
      }
      std::printf("\n");
    }
  }
  std::printf(
      "\n| latency at %lld trials / at %lld | p50 | p99 |\n"
      "|---|---|---|\n",
      static_cast<long long>(large), static_cast<long long>(small));
  for (const char* call : {"suggest", "complete"}) {
    for (const int clients : kClientCounts) {
      const BenchResult& few = report.Get(small, "idle", call, clients);
      const BenchResult& many = report.Get(large, "idle", call, clients);
      std::printf("| %s, %d clients | %.2f | %.2f |\n", call, clients,
                  absl::FDivDuration(many.p50, few.p50),
                  absl::FDivDuration(many.p99, few.p99));
    }
  }
}

absl::Duration BestStartTime(const std::string& db_path) {
  absl::Duration best = absl::InfiniteDuration();
  for (int i = 0; i < 3; ++i)
    best = std::min(best, Bench(db_path).start_time());
  return best;
}

void RunBench(double seconds, int64_t large) {
  constexpr int64_t kSmall = 100;
  const TempDir dir;
  Report report;
  std::printf(
      "| trials | load | call | clients | calls/s | p50 ms | p99 ms |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const int64_t history : {kSmall, large}) {
    MeasureHistory(history, absl::Seconds(seconds),
                   dir.PathOf(absl::StrCat(history, ".db")), &report);
  }
  PrintRatios(report, kSmall, large);
  const absl::Duration empty = BestStartTime(dir.PathOf("empty.db"));
  const absl::Duration full =
      BestStartTime(dir.PathOf(absl::StrCat(large, ".db")));
  std::printf(
      "\nStart to serving: %.0f ms on an empty database, %.0f ms on "
      "that of %lld trials a study (best of 3).\n",
      Report::Ms(empty), Report::Ms(full), static_cast<long long>(large));
}

}  // namespace
}  // namespace cubicml

int main(int argc, char** argv) {
  double seconds = 1.5;
  int64_t history = 100'000;
  CLI::App app("Measures the service against an empty call.", "rpc_bench");
  app.add_option("--seconds", seconds, "For each measurement")
      ->capture_default_str();
  app.add_option("--history", history, "Trials of the long history")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  cubicml::RunBench(seconds, history);
  return 0;
}
