// SPDX-License-Identifier: Apache-2.0
//
// A value that one thread replaces while others read it, such as the current
// model. Readers keep what they got alive and never wait for the writer's work.
// Not std::atomic<std::shared_ptr>: libstdc++ 12's is reported as a race by
// ThreadSanitizer (docs/decisions/0003-std-mutex.md).

#ifndef CUBICML_BASE_SNAPSHOT_H_
#define CUBICML_BASE_SNAPSHOT_H_

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace cubicml {

// Thread-safe.
template <typename T>
class Snapshot {
 public:
  // Null until the first Set().
  std::shared_ptr<const T> Get() const {
    MutexLock lock(&mu_);
    return value_;
  }

  void Set(std::shared_ptr<const T> value) {
    MutexLock lock(&mu_);
    value_.swap(value);  // the old value dies outside the lock
  }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const T> value_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cubicml

#endif  // CUBICML_BASE_SNAPSHOT_H_
