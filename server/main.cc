// SPDX-License-Identifier: Apache-2.0
//
// cubicmld: one process, one database file, one port for jobs and one for
// operators. Chooses the concrete store, trainer and clock, and turns signals
// into an orderly end. docs/operations.md says what operators need to know.
//
// Exit status: 0 drained after SIGTERM or SIGINT, 1 it could not start, 2 the
// command line was wrong.

#include <malloc.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "predictor/surrogate_trainer.h"
#include "server/flags.h"
#include "server/rpc/metrics.h"
#include "server/rpc/server.h"
#include "storage/sqlite_study_store.h"

namespace cubicml {
namespace {

// Of a wrong command line.
constexpr int kExitUsage = 2;

// Measured: with glibc's defaults the heap shrinks and grows again with each
// training step, which makes training 2.5 times slower.
void KeepFreedMemory() {
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
}

double DatabaseBytes(const std::string& path) {
  double bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(path + suffix, ignored);
    if (!ignored) bytes += static_cast<double>(size);
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Server>> StartServer(const Flags& flags) {
  ServerParts parts;
  parts.clock = std::make_unique<SystemClock>();
  parts.metrics = std::make_unique<ServerMetrics>();
  parts.metrics->AddSource(
      "cubicml_database_bytes", "Size of the database and its write-ahead log.",
      [path = flags.db_path] { return DatabaseBytes(path); });
  SqliteStudyStore::Options store;
  store.path = flags.db_path;
  store.clock = parts.clock.get();
  store.observer = parts.metrics.get();
  CUBICML_ASSIGN_OR_RETURN(parts.store, SqliteStudyStore::Open(store));
  parts.trainer = NewSurrogateTrainer();
  return Server::Start(flags.server, std::move(parts));
}

int Run(const Flags& flags) {
  SetLogLevel(flags.log_level);
  KeepFreedMemory();
  // Blocked before the first thread starts, so that only sigwait sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<Server>> server = StartServer(flags);
  if (!server.ok()) {
    std::fprintf(stderr, "cubicmld: %s\n",
                 std::string(server.status().message()).c_str());
    return absl::IsInvalidArgument(server.status()) ? kExitUsage : 1;
  }
  const std::string host = flags.server.listen_address.substr(
      0, flags.server.listen_address.rfind(':'));
  std::printf("listening on %s:%d\n", host.c_str(), (*server)->port());
  if ((*server)->metrics_port() != 0) {
    std::printf("metrics on port %d\n", (*server)->metrics_port());
  }
  std::fflush(stdout);

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  CUBICML_LOG(INFO) << "draining; a second signal ends the process at once"
                    << Field("signal", int64_t{signal_number});
  // Nothing acknowledged is lost by that: it is on disk.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*server)->Drain();
  return 0;
}

}  // namespace
}  // namespace cubicml

int main(int argc, char** argv) {
  cubicml::Flags flags;
  CLI::App app("The CubicML tuning service.", "cubicmld");
  cubicml::AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : cubicml::kExitUsage;
  }
  // Of the store it would be a database in memory, gone with the process.
  if (flags.db_path.empty()) {
    std::fprintf(stderr, "cubicmld: --db_path: must not be empty\n");
    return cubicml::kExitUsage;
  }
  flags.server.drain_timeout = absl::Seconds(flags.drain_timeout_s);
  return cubicml::Run(flags);
}
