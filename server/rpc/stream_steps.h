// SPDX-License-Identifier: Apache-2.0
//
// The threading policy of streams: a stream is a chain of steps, each carried
// out by a worker; between them it holds no thread.

#ifndef CUBICML_SERVER_RPC_STREAM_STEPS_H_
#define CUBICML_SERVER_RPC_STREAM_STEPS_H_

#include <functional>
#include <memory>

#include "base/executor.h"
#include "grpcpp/alarm.h"

namespace cubicml {

// Hands the steps of one stream to the workers. Not thread-safe: a stream has
// one step at a time. Must outlive the step that it was given.
class StreamSteps {
 public:
  explicit StreamSteps(Executor* executor) : executor_(executor) {}

  // Returns false when the queue of the workers is full: the stream has not
  // begun and is refused as a unary call is.
  bool TryBegin(std::function<void()> step);

  // Runs the step as soon as there is a place in the queue. A stream that has
  // begun is slowed by overload, not broken by it.
  void Continue(std::function<void()> step);

 private:
  Executor* const executor_;
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_STREAM_STEPS_H_
