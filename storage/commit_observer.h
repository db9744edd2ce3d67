// SPDX-License-Identifier: Apache-2.0
//
// What the writer of the database tells whoever measures it.

#ifndef CUBICML_STORAGE_COMMIT_OBSERVER_H_
#define CUBICML_STORAGE_COMMIT_OBSERVER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cubicml {

// Called on the writer's thread; must be quick.
class CommitObserver {
 public:
  virtual ~CommitObserver() = default;

  // A group of `operations` was made durable in `latency`, from its BEGIN to
  // the end of its COMMIT; `queue_depth` more were waiting by then.
  virtual void OnCommit(size_t operations, absl::Duration latency,
                        size_t queue_depth) = 0;
  // A group failed as a whole, or writes are refused from now on.
  virtual void OnWriteFailure(const absl::Status& status) = 0;
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_COMMIT_OBSERVER_H_
