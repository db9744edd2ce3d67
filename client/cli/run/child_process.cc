// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/child_process.h"

#include <fcntl.h>
#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cubicml {
namespace {

// Both ends of a pipe; closes what was not taken.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool ok() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  int TakeReadEnd() { return std::exchange(ends_[0], -1); }
  void CloseWriteEnd() { close(std::exchange(ends_[1], -1)); }

 private:
  std::array<int, 2> ends_;
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// exec() puts handlers back by itself, but only then: until then a handler of
// the parent would take a signal that is meant for the job. What is ignored
// stays ignored, apart from SIGPIPE, which we ignore for ourselves.
void ResetHandlers() {
  struct sigaction defaults = {};
  defaults.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &defaults, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) continue;
    sigaction(signal, &defaults, nullptr);
  }
}

// Whoever started the job may be killed; then nobody keeps its trial's lease,
// and the service hands the configuration out again. The job ends with it.
void EndWithParent(pid_t parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have gone before it could be told.
  if (getppid() != parent) _exit(128 + SIGTERM);
#else
  (void)parent;
#endif
}

// In the child, after fork(), with every signal blocked: only what is safe in a
// signal handler, since other threads of the parent may have held locks.
[[noreturn]] void Exec(char** command, char** environment, int out, int err,
                       int error_pipe, pid_t parent) {
  setpgid(0, 0);
  ResetHandlers();
  EndWithParent(parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (isatty(STDIN_FILENO) == 1) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
  }
  if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0) {
    execvpe(command[0], command, environment);
  }
  const int error = errno;
  const ssize_t written = write(error_pipe, &error, sizeof(error));
  (void)written;
  _exit(127);
}

absl::Status StartError(int error, const std::string& program) {
  const std::string message = absl::StrCat("cannot start '", program, "'");
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat(message, ": no such program"));
  }
  const absl::Status status = absl::ErrnoToStatus(error, message);
  if (error == EACCES || error == ENOEXEC || error == EISDIR) {
    return absl::PermissionDeniedError(status.message());
  }
  return absl::InternalError(status.message());
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(
    const std::vector<std::string>& command,
    const std::vector<std::string>& environment) {
  Pipe out;
  Pipe err;
  Pipe error;
  if (!out.ok() || !err.ok() || !error.ok()) {
    return StartError(errno, command[0]);
  }
  std::vector<char*> argv = Pointers(command);
  std::vector<char*> envp = Pointers(environment);
  const pid_t parent = getpid();
  // What comes while the child still has our handlers waits for its own.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return StartError(fork_error, command[0]);
  if (pid == 0) {
    Exec(argv.data(), envp.data(), out.write_end(), err.write_end(),
         error.write_end(), parent);
  }
  // On both sides, since either may be first.
  setpgid(pid, pid);
  out.CloseWriteEnd();
  err.CloseWriteEnd();
  error.CloseWriteEnd();
  int exec_error = 0;
  ssize_t count = 0;
  do {
    count = read(error.read_end(), &exec_error, sizeof(exec_error));
  } while (count < 0 && errno == EINTR);
  if (count == static_cast<ssize_t>(sizeof(exec_error))) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    return StartError(exec_error, command[0]);
  }
  return ChildProcess(pid, out.TakeReadEnd(), err.TakeReadEnd());
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(other.pid_),
      out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  CloseOut();
  CloseErr();
}

void ChildProcess::CloseOut() {
  if (out_ >= 0) close(std::exchange(out_, -1));
}

void ChildProcess::CloseErr() {
  if (err_ >= 0) close(std::exchange(err_, -1));
}

std::optional<int> ChildProcess::Poll() {
  int status = 0;
  if (!status_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = status;
  }
  return status_;
}

void ChildProcess::SignalGroup(int signal) const { kill(-pid_, signal); }

bool ChildProcess::HasGroup() const {
  // In a container this process may be the one that orphans are left to, and a
  // zombie counts as somebody.
  while (waitpid(-pid_, nullptr, WNOHANG) > 0) continue;
  return kill(-pid_, 0) == 0;
}

}  // namespace cubicml
