// SPDX-License-Identifier: Apache-2.0
//
// The command line of cubicmld.

#ifndef CUBICML_SERVER_FLAGS_H_
#define CUBICML_SERVER_FLAGS_H_

#include <string>

#include "CLI/App.hpp"
#include "base/log.h"
#include "server/rpc/server_options.h"

namespace cubicml {

struct Flags {
  std::string db_path = "cubicml.db";
  LogLevel log_level = LogLevel::kInfo;
  double drain_timeout_s = 10;
  ServerOptions server;
};

// `flags` must outlive `app`.
void AddFlags(CLI::App* app, Flags* flags);

}  // namespace cubicml

#endif  // CUBICML_SERVER_FLAGS_H_
