// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/server.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "grpc/grpc.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/version_info.h"
#include "server/rpc/tuning_rpc_service.h"
#include "server/rpc/wire_message.h"

namespace cubicml {
namespace {

constexpr char kServiceName[] = "cubicml.v1.TuningService";

// What all connections together may hold in buffers. Beyond it gRPC slows down
// readers and refuses calls instead of growing.
constexpr size_t kMaxBufferBytes = size_t{512} << 20;
// Studies that are read into memory at the same time. Each takes a connection
// to read by; the store has a few more.
constexpr size_t kLoadThreads = 4;
// Calls of one connection at the same time.
constexpr int kMaxConcurrentStreams = 1000;
// A client that is gone without a word is found out within about a minute.
constexpr int kKeepaliveTimeMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// Clients may ping this often, so that they notice a server that is gone.
constexpr int kMinClientPingMs = 10'000;

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(kMaxRequestBytes));
  builder->SetResourceQuota(
      grpc::ResourceQuota("cubicml").Resize(kMaxBufferBytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              kMaxConcurrentStreams);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinClientPingMs);
  // A second server on the same port must fail, not share its calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// Why a port could not be had, which gRPC tells to its log only.
class ListenError {
 public:
  static ListenError& Get() {
    static ListenError& error = *new ListenError();
    return error;
  }
  void Set(absl::string_view line) {
    constexpr absl::string_view kBefore = "os_error:\"";
    const size_t start = line.find(kBefore);
    if (start == absl::string_view::npos) return;
    line.remove_prefix(start + kBefore.size());
    MutexLock lock(&mu_);
    reason_ = std::string(line.substr(0, line.find('"')));
  }
  std::string Take() {
    MutexLock lock(&mu_);
    return std::exchange(reason_, "");
  }

 private:
  Mutex mu_;
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

// Not to standard error in a form of its own. Which lines there are is decided
// by $GRPC_VERBOSITY, as ever.
void RouteGrpcLog() {
// gRPC 1.65 logs through Abseil.
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 65
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (absl::StrContains(line->message, "No address added")) {
      ListenError::Get().Set(line->message);  // StartListening() tells it
      return;
    }
    switch (line->severity) {
      case GPR_LOG_SEVERITY_DEBUG:
        CUBICML_LOG(DEBUG) << "gRPC" << Field("text", line->message);
        break;
      case GPR_LOG_SEVERITY_INFO:
        CUBICML_LOG(INFO) << "gRPC" << Field("text", line->message);
        break;
      case GPR_LOG_SEVERITY_ERROR:
        CUBICML_LOG(ERROR) << "gRPC" << Field("text", line->message);
        break;
    }
  });
#endif
}

// Runs one step of an orderly end and tells how long it took.
void TimedStep(const Clock& clock, absl::string_view step,
               const std::function<void()>& run) {
  const absl::Duration start = clock.Elapsed();
  run();
  CUBICML_LOG(INFO) << "drain" << Field("step", step)
                    << Field("seconds",
                             absl::ToDoubleSeconds(clock.Elapsed() - start));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options, ServerParts parts) {
  CUBICML_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<Server> server(new Server(options, std::move(parts)));
  CUBICML_RETURN_IF_ERROR(server->StartService());
  CUBICML_RETURN_IF_ERROR(server->StartListening());
  CUBICML_RETURN_IF_ERROR(server->StartMetricsEndpoint());
  server->health_->Start();
  CUBICML_RETURN_IF_ERROR(server->WritePortFile());
  return server;
}

Server::Server(const ServerOptions& options, ServerParts parts)
    : options_(options),
      clock_(std::move(parts.clock)),
      metrics_(std::move(parts.metrics)),
      store_(std::move(parts.store)),
      trainer_(std::move(parts.trainer)) {}

Server::~Server() { Drain(); }

absl::Status Server::StartService() {
  StudyServiceOptions options;
  options.store = store_.get();
  options.trainer = trainer_.get();
  options.clock = clock_.get();
  options.observer = metrics_.get();
  options.seed = options_.seed;
  options.load_threads = kLoadThreads;
  CUBICML_ASSIGN_OR_RETURN(service_, StudyService::Create(options));
  workers_ = std::make_unique<ThreadPool>("worker", options_.worker_threads,
                                          options_.max_queued_calls);
  metrics_->AddSource("cubicml_rpc_queue_depth",
                      "Calls that wait for a worker.",
                      [workers = workers_.get()] {
                        return static_cast<double>(workers->queue_depth());
                      });
  TrainingLoopOptions training;
  training.niceness = options_.training_niceness;
  training_ = std::make_unique<TrainingLoop>(service_.get(), training);
  return absl::OkStatus();
}

absl::Status Server::StartListening() {
  RouteProtobufLog();
  RouteGrpcLog();
  rpc_service_ = CreateTuningRpcService(
      {service_.get(), workers_.get(), clock_.get(), metrics_.get()});
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  builder.AddListeningPort(options_.listen_address,
                           grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(rpc_service_.get());
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr || port_ == 0) {
    const std::string reason = ListenError::Get().Take();
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options_.listen_address,
        reason.empty() ? "; is it in use?" : absl::StrCat(": ", reason)));
  }
  HealthMonitorOptions health;
  health.store = store_.get();
  health.service = service_.get();
  health.metrics = metrics_.get();
  health.clock = clock_.get();
  health.publish = [server = grpc_server_.get()](bool serving) {
    server->GetHealthCheckService()->SetServingStatus(kServiceName, serving);
    server->GetHealthCheckService()->SetServingStatus("", serving);
  };
  health_ = std::make_unique<HealthMonitor>(std::move(health));
  return absl::OkStatus();
}

absl::Status Server::StartMetricsEndpoint() {
  metrics_->AddSource("cubicml_serving", "1 while calls are served.",
                      [health = health_.get()] {
                        return health->Readiness().ok() ? 1.0 : 0.0;
                      });
  if (options_.metrics_address.empty()) return absl::OkStatus();
  MetricsEndpoint::Content content;
  content.metrics = [metrics = metrics_.get()] { return metrics->Render(); };
  content.readiness = [health = health_.get()] { return health->Readiness(); };
  CUBICML_ASSIGN_OR_RETURN(
      metrics_endpoint_,
      MetricsEndpoint::Create(options_.metrics_address, std::move(content)));
  return absl::OkStatus();
}

absl::Status Server::WritePortFile() const {
  if (options_.port_file.empty()) return absl::OkStatus();
  // Renamed into place: whoever waits for the file never reads half of it.
  const std::string temporary = absl::StrCat(options_.port_file, ".tmp");
  std::ofstream file(temporary);
  file << port_ << "\n";
  file.close();
  if (!file ||
      std::rename(temporary.c_str(), options_.port_file.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", options_.port_file));
  }
  return absl::OkStatus();
}

int Server::metrics_port() const {
  return metrics_endpoint_ == nullptr ? 0 : metrics_endpoint_->port();
}

void Server::Drain() {
  if (clock_ == nullptr || store_ == nullptr) return;
  if (health_ != nullptr) health_->SetDraining();
  if (grpc_server_ != nullptr) {
    TimedStep(*clock_, "calls", [this] {
      grpc_server_->Shutdown(
          std::chrono::system_clock::now() +
          absl::ToChronoMilliseconds(options_.drain_timeout));
    });
  }
  if (health_ != nullptr) health_->Stop();
  metrics_->ForgetSources();
  TimedStep(*clock_, "workers", [this] { workers_.reset(); });
  TimedStep(*clock_, "training", [this] { training_.reset(); });
  grpc_server_.reset();
  rpc_service_.reset();
  service_.reset();
  TimedStep(*clock_, "store", [this] { store_.reset(); });
  // Last: its library takes up to two seconds to stop, and a scrape meanwhile
  // shows the final counts.
  TimedStep(*clock_, "metrics", [this] { metrics_endpoint_.reset(); });
  health_.reset();
}

}  // namespace cubicml
