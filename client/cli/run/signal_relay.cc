// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/signal_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/log.h"

namespace cubicml {
namespace {

constexpr int kCaught[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                           SIGUSR1, SIGUSR2, SIGCHLD};

// A signal handler reaches nothing but globals.
std::atomic<int> handler_pipe{-1};
std::atomic<bool> handler_holding{false};

void HandleSignal(int signal) {
  const int saved_errno = errno;
  if (SignalRelay::IsStop(signal) && !handler_holding.load()) {
    _exit(128 + signal);
  }
  const unsigned char byte = static_cast<unsigned char>(signal);
  // A full pipe has woken the reader already.
  const ssize_t written = write(handler_pipe.load(), &byte, 1);
  (void)written;
  errno = saved_errno;
}

}  // namespace

bool SignalRelay::IsStop(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP ||
         signal == SIGQUIT;
}

SignalRelay::SignalRelay() {
  int ends[2];
  CUBICML_CHECK(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  read_end_ = ends[0];
  write_end_ = ends[1];
  handler_pipe.store(write_end_);
  handler_holding.store(false);
  for (const int signal : kCaught) {
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_IGN && signal != SIGCHLD) continue;
    struct sigaction action = {};
    action.sa_handler = HandleSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
    old_actions_[signal] = old;
  }
  struct sigaction old = {};
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &old);
  old_actions_[SIGPIPE] = old;
}

SignalRelay::~SignalRelay() {
  for (const auto& [signal, action] : old_actions_) {
    sigaction(signal, &action, nullptr);
  }
  handler_pipe.store(-1);
  close(read_end_);
  close(write_end_);
}

void SignalRelay::SetHolding(bool holding) { handler_holding.store(holding); }

std::vector<int> SignalRelay::Take() {
  std::vector<int> signals;
  unsigned char bytes[64];
  ssize_t count = 0;
  while ((count = read(read_end_, bytes, sizeof(bytes))) > 0) {
    for (ssize_t i = 0; i < count; ++i) {
      if (bytes[i] != SIGCHLD) signals.push_back(bytes[i]);
    }
  }
  return signals;
}

}  // namespace cubicml
