// SPDX-License-Identifier: Apache-2.0

#include "server/flags.h"

#include <map>

#include "CLI/CLI.hpp"

namespace cubicml {

void AddFlags(CLI::App* app, Flags* flags) {
  ServerOptions& server = flags->server;
  const std::map<std::string, LogLevel> levels = {
      {"debug", LogLevel::kDebug},
      {"info", LogLevel::kInfo},
      {"warning", LogLevel::kWarning},
      {"error", LogLevel::kError}};
  app->set_version_flag("--version", "cubicmld " CUBICML_VERSION);
  app->add_option("--db_path", flags->db_path,
                  "The database file; made when it is missing")
      ->capture_default_str();
  app->add_option("--listen_address", server.listen_address,
                  "host:port of the gRPC service; port 0 takes any free one")
      ->capture_default_str();
  app->add_option("--metrics_address", server.metrics_address,
                  "host:port of /metrics, /healthz and /readyz; empty: none")
      ->capture_default_str();
  app->add_flag("--insecure_listen_anywhere", server.insecure_listen_anywhere,
                "Allow addresses that other machines reach, without "
                "encryption or login");
  app->add_option("--port_file", server.port_file,
                  "Is written with the gRPC port once calls are served");
  app->add_option("--worker_threads", server.worker_threads,
                  "Calls that are carried out at the same time")
      ->capture_default_str();
  app->add_option("--max_queued_calls", server.max_queued_calls,
                  "Calls that may wait for a worker; more are refused")
      ->capture_default_str();
  app->add_option("--drain_timeout_s", flags->drain_timeout_s,
                  "Seconds that unfinished calls are given at the end")
      ->capture_default_str();
  app->add_option("--seed", server.seed,
                  "For studies that have none; 0: from the system")
      ->capture_default_str();
  app->add_option("--training_niceness", server.training_niceness,
                  "Of the thread that trains; 19 yields most to all others")
      ->capture_default_str();
  app->add_option("--log_level", flags->log_level,
                  "debug, info, warning or error")
      ->default_str("info")
      ->transform(CLI::CheckedTransformer(levels).description(""));
}

}  // namespace cubicml
