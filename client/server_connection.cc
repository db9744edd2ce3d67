// SPDX-License-Identifier: Apache-2.0

#include "client/server_connection.h"

#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "client/rpc_status.h"

namespace cubicml {
namespace {

class SystemWaiter final : public Waiter {
 public:
  absl::Duration Elapsed() const override { return clock_.Elapsed(); }

  void Wait(absl::Duration duration) override {
    Mutex mu;
    CondVar never_notified;
    MutexLock lock(&mu);
    const absl::Duration end = Elapsed() + duration;
    for (absl::Duration now = Elapsed(); now < end; now = Elapsed()) {
      never_notified.WaitFor(&mu, end - now);
    }
  }

 private:
  const SystemClock clock_;
};

int ToMilliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

std::shared_ptr<grpc::Channel> MakeChannel(const TuningClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   ToMilliseconds(options.keepalive_time));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   ToMilliseconds(options.keepalive_timeout));
  // Only during calls: servers end connections that ping while idle.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  // Retries are RetryPolicy's, which knows what may be repeated.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // gRPC fails calls at once while it waits to connect again; its default of
  // up to two minutes would outlast our own attempts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  return grpc::CreateCustomChannel(
      options.server, grpc::InsecureChannelCredentials(), arguments);
}

std::chrono::system_clock::time_point DeadlineIn(absl::Duration timeout) {
  return std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout);
}

}  // namespace

ServerConnection::ServerConnection(TuningClientOptions options)
    : options_(std::move(options)),
      waiter_(std::make_unique<SystemWaiter>()),
      channel_(MakeChannel(options_)),
      stub_(v1::TuningService::NewStub(channel_)) {}

absl::Status ServerConnection::Repeat(
    Repeatable repeatable, absl::Duration timeout,
    absl::Duration attempt_timeout,
    const std::function<absl::Status(absl::Duration timeout)>& attempt) {
  RetryPolicy policy(options_.retry, options_.wait_for_ready, repeatable,
                     Rng(Rng::NewSeed()));
  const absl::Duration limit = attempt_timeout > absl::ZeroDuration()
                                   ? attempt_timeout
                                   : options_.attempt_timeout;
  return RetryCall(std::move(policy), TimeoutOr(timeout), limit, waiter_.get(),
                   attempt);
}

absl::Status ServerConnection::WaitForConnection(absl::Duration timeout) {
  if (channel_->WaitForConnected(DeadlineIn(TimeoutOr(timeout)))) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("no connection to " + options_.server);
}

void ServerConnection::Prepare(absl::Duration timeout,
                               grpc::ClientContext* context) const {
  context->set_deadline(DeadlineIn(timeout));
}

absl::Status ServerConnection::Convert(const grpc::Status& status,
                                       absl::string_view call) const {
  return FromGrpcStatus(status, call, options_.server);
}

absl::Duration ServerConnection::TimeoutOr(absl::Duration timeout) const {
  return timeout > absl::ZeroDuration() ? timeout : options_.timeout;
}

}  // namespace cubicml
