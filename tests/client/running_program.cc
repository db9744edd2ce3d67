// SPDX-License-Identifier: Apache-2.0

#include "tests/client/running_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "client/cli/output.h"
#include "client/cli/run/job_files.h"

namespace cubicml {
namespace {

int FileWith(const std::string& text) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  CUBICML_CHECK(file >= 0 && WriteAll(file, text).ok());
  lseek(file, 0, SEEK_SET);
  return file;
}

void ReadInto(int* end, std::string* text) {
  char buffer[1 << 14];
  const ssize_t count = read(*end, buffer, sizeof(buffer));
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) {
    close(*end);
    *end = -1;
    return;
  }
  text->append(buffer, static_cast<size_t>(count));
}

}  // namespace

RunningProgram::RunningProgram(
    const std::vector<std::string>& command,
    const std::map<std::string, std::string>& environment,
    const std::string& input) {
  int out[2];
  int err[2];
  CUBICML_CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);
  const int in = FileWith(input);
  const std::vector<std::string> variables =
      MergeEnvironment(OwnEnvironment(), environment);
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const std::string& variable : variables) {
    envp.push_back(const_cast<char*>(variable.c_str()));
  }
  envp.push_back(nullptr);
  pid_ = fork();
  CUBICML_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    dup2(in, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(99);
  }
  close(in);
  close(out[1]);
  close(err[1]);
  out_end_ = out[0];
  err_end_ = err[0];
}

RunningProgram::~RunningProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
}

bool RunningProgram::ReadSome() {
  pollfd entries[] = {{out_end_, POLLIN, 0}, {err_end_, POLLIN, 0}};
  if (out_end_ < 0 && err_end_ < 0) return false;
  poll(entries, 2, -1);
  if (out_end_ >= 0 && entries[0].revents != 0) ReadInto(&out_end_, &out_);
  if (err_end_ >= 0 && entries[1].revents != 0) ReadInto(&err_end_, &err_);
  return true;
}

void RunningProgram::AwaitOut(const std::string& text) {
  while (out_.find(text) == std::string::npos && ReadSome()) continue;
}

void RunningProgram::AwaitErr(const std::string& text) {
  while (err_.find(text) == std::string::npos && ReadSome()) continue;
}

void RunningProgram::Signal(int signal) { kill(pid_, signal); }

int RunningProgram::Wait() {
  while (ReadSome()) continue;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cubicml
