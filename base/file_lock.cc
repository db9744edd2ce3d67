// SPDX-License-Identifier: Apache-2.0

#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace cubicml {

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path,
                                           absl::Duration wait) {
  constexpr absl::Duration kBetweenTries = absl::Milliseconds(50);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  }
  FileLock lock(fd);
  // flock, not fcntl: it also keeps two stores of one process apart.
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return absl::ErrnoToStatus(errno, absl::StrCat("locking ", path));
    }
    if (wait > absl::ZeroDuration()) {
      absl::SleepFor(kBetweenTries);
      wait -= kBetweenTries;
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is locked: another server uses this database. Stop it, "
                     "or name another database"));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace cubicml
