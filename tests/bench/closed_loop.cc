// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/closed_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"

namespace cubicml {
namespace {

using Stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

const SystemClock& GetClock() {
  static const SystemClock clock;
  return clock;
}

// Counts the clients that are still at work.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void Done() {
    MutexLock lock(&mu_);
    if (--left_ == 0) zero_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(&mu_);
    while (left_ > 0) zero_.Wait(&mu_);
  }

 private:
  Mutex mu_;
  CondVar zero_;
  int left_ ABSL_GUARDED_BY(mu_);
};

class LoopClient {
 public:
  LoopClient(const std::shared_ptr<grpc::Channel>& channel,
             const BenchCall* call, absl::Duration end, Countdown* countdown)
      : stub_(channel), call_(call), end_(end), countdown_(countdown) {}

  void Next() {
    started_ = GetClock().Elapsed();
    request_.Clear();
    if (started_ >= end_ || !call_->next_request(&request_)) {
      countdown_->Done();
      return;
    }
    context_.emplace();
    response_.Clear();
    stub_.UnaryCall(&*context_, call_->path, {}, &request_, &response_,
                    [this](grpc::Status status) { OnAnswer(status); });
  }

  const std::vector<float>& latencies_us() const { return latencies_us_; }
  int64_t errors() const { return errors_; }
  const std::string& first_error() const { return first_error_; }

 private:
  void OnAnswer(const grpc::Status& status) {
    if (static_cast<int>(status.error_code()) == call_->expected_code) {
      latencies_us_.push_back(static_cast<float>(
          absl::ToDoubleMicroseconds(GetClock().Elapsed() - started_)));
      if (call_->on_response) call_->on_response(response_);
    } else if (++errors_ == 1) {
      first_error_ = absl::StrCat(static_cast<int>(status.error_code()), " ",
                                  status.error_message());
    }
    Next();
  }

  Stub stub_;
  const BenchCall* const call_;
  const absl::Duration end_;
  Countdown* const countdown_;
  std::optional<grpc::ClientContext> context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  absl::Duration started_;
  std::vector<float> latencies_us_;
  int64_t errors_ = 0;
  std::string first_error_;
};

absl::Duration Quantile(std::vector<float>* sorted_us, double quantile) {
  if (sorted_us->empty()) return absl::InfiniteDuration();
  const size_t at = static_cast<size_t>(
      quantile * static_cast<double>(sorted_us->size() - 1));
  return absl::Microseconds((*sorted_us)[at]);
}

}  // namespace

BenchResult RunClosedLoop(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, int clients,
    absl::Duration duration, const BenchCall& call) {
  Countdown countdown(clients);
  const absl::Duration start = GetClock().Elapsed();
  std::vector<std::unique_ptr<LoopClient>> loops;
  for (int i = 0; i < clients; ++i) {
    loops.push_back(std::make_unique<LoopClient>(
        channels[static_cast<size_t>(i) % channels.size()], &call,
        start + duration, &countdown));
  }
  for (const auto& loop : loops) loop->Next();
  countdown.Wait();
  const absl::Duration took = GetClock().Elapsed() - start;
  BenchResult result;
  std::vector<float> latencies_us;
  for (const auto& loop : loops) {
    latencies_us.insert(latencies_us.end(), loop->latencies_us().begin(),
                        loop->latencies_us().end());
    result.errors += loop->errors();
    if (result.first_error.empty()) result.first_error = loop->first_error();
  }
  std::sort(latencies_us.begin(), latencies_us.end());
  result.answers = static_cast<int64_t>(latencies_us.size());
  result.rate =
      static_cast<double>(latencies_us.size()) / absl::ToDoubleSeconds(took);
  result.p50 = Quantile(&latencies_us, 0.5);
  result.p99 = Quantile(&latencies_us, 0.99);
  return result;
}

}  // namespace cubicml
