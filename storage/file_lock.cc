// SPDX-License-Identifier: Apache-2.0

#include "storage/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cubicml {

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  }
  FileLock lock(fd);
  // flock, not fcntl: it also keeps two stores of one process apart.
  int result = 0;
  do {
    result = flock(fd, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return lock;
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is locked: another server uses this database. Stop it, "
                     "or name another database"));
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("locking ", path));
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace cubicml
