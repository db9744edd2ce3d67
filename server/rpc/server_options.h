// SPDX-License-Identifier: Apache-2.0
//
// How a server listens and what bounds it.

#ifndef CUBICML_SERVER_RPC_SERVER_OPTIONS_H_
#define CUBICML_SERVER_RPC_SERVER_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/default_port.h"

namespace cubicml {

struct ServerOptions {
  // "host:port"; port 0 lets the system choose.
  std::string listen_address = absl::StrCat("127.0.0.1:", kDefaultPort);
  // Where /metrics, /healthz and /readyz are; empty: nowhere.
  std::string metrics_address = absl::StrCat("127.0.0.1:", kDefaultMetricsPort);
  // Neither port asks who is there, so both stay on this machine unless the
  // operator says that the network may be trusted.
  bool insecure_listen_anywhere = false;
  // Is written with the port, once calls are served; empty: no file.
  std::string port_file;

  // Calls that are carried out, and that wait, at the same time.
  size_t worker_threads = 32;
  size_t max_queued_calls = 1024;
  // What unfinished calls are given when the server drains.
  absl::Duration drain_timeout = absl::Seconds(10);
  // 0: from the operating system.
  uint64_t seed = 0;
  // Of the thread that trains, from 0 to 19. Enough for calls to come first,
  // and for training to go on where jobs fill the server's own machine.
  int training_niceness = 10;

  // INVALID_ARGUMENT naming the flag.
  absl::Status Validate() const;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_SERVER_OPTIONS_H_
