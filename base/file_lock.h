// SPDX-License-Identifier: Apache-2.0
//
// An exclusive lock on a file for as long as the process lives, so that two
// servers never write one database.

#ifndef CUBICML_BASE_FILE_LOCK_H_
#define CUBICML_BASE_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cubicml {

// Freed by its destruction or the process's end, kill -9 included. The file
// stays: deleting it would let a third process lock another of the same name.
class FileLock {
 public:
  // Creates the file if needed. FAILED_PRECONDITION, naming the file, when it
  // is locked for longer than `wait`: a process that was killed holds its locks
  // until its last thread has ended. NOT_FOUND when its folder does not exist;
  // PERMISSION_DENIED.
  static absl::StatusOr<FileLock> Acquire(const std::string& path,
                                          absl::Duration wait);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;  // -1: moved
};

}  // namespace cubicml

#endif  // CUBICML_BASE_FILE_LOCK_H_
