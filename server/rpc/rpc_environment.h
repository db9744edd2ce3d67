// SPDX-License-Identifier: Apache-2.0
//
// What every call of the transport needs.

#ifndef CUBICML_SERVER_RPC_RPC_ENVIRONMENT_H_
#define CUBICML_SERVER_RPC_RPC_ENVIRONMENT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/executor.h"
#include "server/core/study_service.h"

namespace cubicml {

// Is told the end of every call. Thread-safe and quick.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;
  // `duration` is from the arrival of the call, waiting for a worker included.
  virtual void OnRpcDone(absl::string_view method, absl::StatusCode code,
                         absl::Duration duration) = 0;
  // Besides OnRpcDone: the call found the queue of the workers full.
  virtual void OnRpcRejected() = 0;
};

// All must outlive the calls.
struct RpcEnvironment {
  StudyService* service = nullptr;
  Executor* executor = nullptr;
  const Clock* clock = nullptr;
  RpcObserver* observer = nullptr;
};

// How long a client is asked to stay away when the queue is full. The queue
// holds a fraction of a second of work.
inline constexpr absl::Duration kOverloadRetryDelay = absl::Milliseconds(250);
inline constexpr absl::string_view kOverloadMessage =
    "too many calls are waiting; retry with backoff";

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_RPC_ENVIRONMENT_H_
