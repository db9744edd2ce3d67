// SPDX-License-Identifier: Apache-2.0

#include "tests/support/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace cubicml {
namespace {

// Starts the program with its standard output, and its standard error where
// `error_fd` says so, going to descriptors of ours.
pid_t Spawn(const std::vector<std::string>& flags, int out_fd, int error_fd) {
  std::vector<std::string> words = {CUBICMLD_PATH};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
  dup2(out_fd, STDOUT_FILENO);
  if (error_fd >= 0) dup2(error_fd, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(127);
}

int WaitFor(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// The number after the last colon or space of a line.
int NumberAtEnd(const std::string& line) {
  const size_t begin = line.find_last_of(": ");
  int number = 0;
  if (begin == std::string::npos ||
      !absl::SimpleAtoi(line.substr(begin + 1), &number)) {
    return 0;
  }
  return number;
}

std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1 && c != '\n') line.push_back(c);
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const Options& options) {
  std::vector<std::string> flags = {
      absl::StrCat("--db_path=", options.db_path),
      absl::StrCat("--listen_address=127.0.0.1:", options.port),
      "--metrics_address=127.0.0.1:0"};
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  std::array<int, 2> out;
  if (pipe2(out.data(), O_CLOEXEC) != 0) return absl::InternalError("pipe");
  const int log = options.log_path.empty()
                      ? -1
                      : open(options.log_path.c_str(),
                             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  std::unique_ptr<ServerProcess> server(new ServerProcess);
  server->pid_ = Spawn(flags, out[1], log);
  close(out[1]);
  if (log >= 0) close(log);
  server->port_ = NumberAtEnd(ReadLine(out[0]));
  if (server->port_ != 0) server->metrics_port_ = NumberAtEnd(ReadLine(out[0]));
  close(out[0]);
  if (server->port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("the server ended with status ", server->Wait()));
  }
  return server;
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) Kill();
}

std::string ServerProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

std::shared_ptr<grpc::Channel> ServerProcess::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Tests decide what is tried again.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(
      address(), grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<v1::TuningService::Stub> ServerProcess::NewStub() const {
  return v1::TuningService::NewStub(NewChannel());
}

void ServerProcess::Signal(int signal_number) const {
  if (!ended_) kill(pid_, signal_number);
}

int ServerProcess::Wait() {
  if (!ended_) exit_ = WaitFor(pid_);
  ended_ = true;
  return exit_;
}

void ServerProcess::Kill() {
  Signal(SIGKILL);
  Wait();
}

int RunServerProgram(const std::vector<std::string>& flags,
                     std::string* output) {
  std::array<int, 2> out;
  if (pipe2(out.data(), O_CLOEXEC) != 0) return 127;
  const pid_t pid = Spawn(flags, out[1], out[1]);
  close(out[1]);
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = read(out[0], buffer.data(), buffer.size())) > 0) {
    output->append(buffer.data(), static_cast<size_t>(got));
  }
  close(out[0]);
  return WaitFor(pid);
}

}  // namespace cubicml
