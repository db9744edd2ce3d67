// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/stream_steps.h"

#include <chrono>
#include <utility>

namespace cubicml {
namespace {

constexpr std::chrono::milliseconds kFullQueueDelay{20};

}  // namespace

bool StreamSteps::TryBegin(std::function<void()> step) {
  return executor_->TrySchedule(std::move(step));
}

void StreamSteps::Continue(std::function<void()> step) {
  if (executor_->TrySchedule(step)) return;
  // A fresh alarm for each try: setting one again from its own callback would
  // destroy the callback that is running.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(std::chrono::system_clock::now() + kFullQueueDelay,
              [this, step = std::move(step)](bool) { Continue(step); });
}

}  // namespace cubicml
