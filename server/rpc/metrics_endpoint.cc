// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/metrics_endpoint.h"

#include <pthread.h>

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "civetweb.h"

namespace cubicml {
namespace {

// What civetweb gives its threads.
constexpr size_t kHttpThreadStackBytes = 102400;

constexpr char kMetricsContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

// File names of the loaded libraries that are known to use too much
// thread-local storage.
std::string LoadedThreadedBlas() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (absl::StrContains(line, "openblas-pthread") ||
        absl::StrContains(line, "openblas-openmp")) {
      return line.substr(line.find('/'));
    }
  }
  return "";
}

// The thread-local storage of all loaded libraries lies on each thread's stack.
// Where it does not fit, civetweb only says that it could not bind its port.
absl::Status CheckSmallThreadsStart() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kHttpThreadStackBytes);
  pthread_t thread;
  const int error = pthread_create(
      &thread, &attributes, [](void*) -> void* { return nullptr; }, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) {
    pthread_join(thread, nullptr);
    return absl::OkStatus();
  }
  const std::string blas = LoadedThreadedBlas();
  return absl::FailedPreconditionError(absl::StrCat(
      "the metrics port cannot be served: a thread with ",
      kHttpThreadStackBytes, " bytes of stack does not start (",
      std::strerror(error),
      "), because the thread-local storage of a loaded "
      "library does not fit into it. ",
      blas.empty() ? std::string("")
                   : absl::StrCat("This is known of ", blas, ". "),
      "Install libopenblas0-serial and remove libopenblas0-pthread and "
      "libopenblas0-openmp, or start with --metrics_address= (no metrics)"));
}

int Send(mg_connection* connection, int code, const char* content_type,
         absl::string_view body) {
  mg_response_header_start(connection, code);
  mg_response_header_add(connection, "Content-Type", content_type, -1);
  mg_response_header_add(connection, "Content-Length",
                         absl::StrCat(body.size()).c_str(), -1);
  mg_response_header_add(connection, "Cache-Control", "no-store", -1);
  mg_response_header_send(connection);
  mg_write(connection, body.data(), body.size());
  return code;
}

}  // namespace

MetricsEndpoint::MetricsEndpoint(Content content)
    : content_(std::move(content)) {}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Create(
    const std::string& address, Content content) {
  CUBICML_RETURN_IF_ERROR(CheckSmallThreadsStart());
  // The library is set up once and stays: others may use it too.
  static const unsigned initialized = mg_init_library(MG_FEATURES_DEFAULT);
  static_cast<void>(initialized);
  std::unique_ptr<MetricsEndpoint> endpoint(
      new MetricsEndpoint(std::move(content)));
  const char* options[] = {"listening_ports",
                           address.c_str(),
                           "num_threads",
                           "2",
                           "request_timeout_ms",
                           "10000",
                           "enable_keep_alive",
                           "yes",
                           "keep_alive_timeout_ms",
                           "200",
                           nullptr};
  mg_callbacks callbacks = {};
  callbacks.log_message = [](const mg_connection*, const char* message) {
    CUBICML_LOG(WARNING) << "metrics port" << Field("text", message);
    return 1;  // nothing else logs it
  };
  std::array<char, 256> error_text = {};
  unsigned error_code = 0;
  mg_error_data error = {&error_code, error_text.data(), error_text.size()};
  mg_init_data init = {&callbacks, endpoint.get(), options};
  endpoint->context_ = mg_start2(&init, &error);
  if (endpoint->context_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on the metrics address ", address, ": ",
                     error_text.data(), "; is it in use?"));
  }
  mg_set_request_handler(endpoint->context_, "/metrics$", &ServeMetrics,
                         endpoint.get());
  mg_set_request_handler(endpoint->context_, "/healthz$", &ServeHealth,
                         endpoint.get());
  mg_set_request_handler(endpoint->context_, "/readyz$", &ServeReadiness,
                         endpoint.get());
  return endpoint;
}

MetricsEndpoint::~MetricsEndpoint() {
  if (context_ != nullptr) mg_stop(context_);
}

int MetricsEndpoint::port() const {
  mg_server_port ports[1] = {};
  return mg_get_server_ports(context_, 1, ports) == 1 ? ports[0].port : 0;
}

int MetricsEndpoint::ServeMetrics(mg_connection* connection, void* self) {
  const auto* endpoint = static_cast<MetricsEndpoint*>(self);
  return Send(connection, 200, kMetricsContentType,
              endpoint->content_.metrics());
}

int MetricsEndpoint::ServeHealth(mg_connection* connection, void*) {
  return Send(connection, 200, "text/plain", "ok\n");
}

int MetricsEndpoint::ServeReadiness(mg_connection* connection, void* self) {
  const auto* endpoint = static_cast<MetricsEndpoint*>(self);
  const absl::Status readiness = endpoint->content_.readiness();
  if (readiness.ok()) return Send(connection, 200, "text/plain", "ok\n");
  return Send(connection, 503, "text/plain",
              absl::StrCat(readiness.message(), "\n"));
}

}  // namespace cubicml
