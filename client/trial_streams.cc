// SPDX-License-Identifier: Apache-2.0
//
// The two calls of TuningClient that are streams.

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "client/active_trial.h"
#include "client/server_connection.h"
#include "cubicml/client/resource_names.h"
#include "cubicml/client/tuning_client.h"

namespace cubicml {
namespace {

using Stub = v1::TuningService::StubInterface;

// gRPC's own limit for a message is 4 MiB; a trial may be the last of one.
constexpr size_t kImportMessageBytes = 1 << 20;
constexpr int kImportMessageTrials = 1000;

// Cancels a call when nothing has come for a while. A stream has one deadline,
// which cannot be said in advance for a history of unknown length.
class StallGuard {
 public:
  StallGuard(grpc::ClientContext* context, absl::Duration limit)
      : context_(context), limit_(limit), thread_([this] { Run(); }) {}

  ~StallGuard() {
    {
      MutexLock lock(&mu_);
      done_ = true;
      wake_.NotifyAll();
    }
    thread_.join();
  }

  void Moved() {
    MutexLock lock(&mu_);
    moved_ = true;
  }

  bool stalled() const {
    MutexLock lock(&mu_);
    return stalled_;
  }

 private:
  void Run() {
    SetThreadName("cubicml-export");
    MutexLock lock(&mu_);
    absl::Duration deadline = clock_.Elapsed() + limit_;
    while (!done_) {
      if (moved_) {
        moved_ = false;
        deadline = clock_.Elapsed() + limit_;
      }
      const absl::Duration left = deadline - clock_.Elapsed();
      if (left <= absl::ZeroDuration()) {
        stalled_ = true;
        context_->TryCancel();
        return;
      }
      wake_.WaitFor(&mu_, left);
    }
  }

  grpc::ClientContext* const context_;
  const absl::Duration limit_;
  const SystemClock clock_;
  mutable Mutex mu_;
  CondVar wake_;
  bool moved_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the members above
};

// One attempt of an export. `last` is the number of the last trial taken.
absl::Status ExportOnce(
    ServerConnection* connection, const v1::ExportTrialsRequest& request,
    absl::Duration stall_limit,
    const std::function<absl::Status(const v1::Trial&)>& take, int64_t* last,
    absl::Status* refused) {
  grpc::ClientContext context;
  StallGuard guard(&context, stall_limit);
  const auto reader = connection->stub().ExportTrials(&context, request);
  v1::Trial trial;
  while (reader->Read(&trial)) {
    guard.Moved();
    *refused = take(trial);
    if (!refused->ok()) {
      context.TryCancel();
      while (reader->Read(&trial)) continue;
      reader->Finish();
      return absl::OkStatus();
    }
    *last = TrialNumberOf(trial.name());
  }
  const grpc::Status finished = reader->Finish();
  if (guard.stalled()) {
    return absl::DeadlineExceededError(
        absl::StrCat("ExportTrials at ", connection->options().server,
                     ": nothing came for ", absl::FormatDuration(stall_limit)));
  }
  return connection->Convert(finished, "ExportTrials");
}

// What may be sent together from `begin` on; at least one trial.
size_t MessageEnd(std::span<const v1::Trial> trials, size_t begin) {
  size_t bytes = 0;
  size_t end = begin;
  while (end < trials.size() && end - begin < size_t{kImportMessageTrials}) {
    bytes += trials[end].ByteSizeLong();
    if (bytes > kImportMessageBytes && end > begin) break;
    ++end;
  }
  return end;
}

}  // namespace

absl::StatusOr<v1::ImportTrialsResponse> TuningClient::ImportTrials(
    const std::string& study_name, std::span<const v1::Trial> trials,
    CallOptions options) {
  ServerConnection& connection = session_->connection;
  const absl::Duration timeout = connection.TimeoutOr(options.timeout);
  // The stream is not repeated, so it does not start on a dead connection.
  CUBICML_RETURN_IF_ERROR(connection.WaitForConnection(
      std::min(timeout, connection.options().attempt_timeout)));
  grpc::ClientContext context;
  connection.Prepare(timeout, &context);
  v1::ImportTrialsResponse response;
  const auto writer = connection.stub().ImportTrials(&context, &response);
  v1::ImportTrialsRequest request;
  request.set_parent(study_name);
  size_t begin = 0;
  do {
    const size_t end = MessageEnd(trials, begin);
    for (; begin < end; ++begin) *request.add_trials() = trials[begin];
    if (!writer->Write(request)) break;  // Finish() says why
    request.Clear();
  } while (begin < trials.size());
  writer->WritesDone();
  CUBICML_RETURN_IF_ERROR(connection.Convert(writer->Finish(), "ImportTrials"));
  return response;
}

absl::Status TuningClient::ExportTrials(
    const v1::ExportTrialsRequest& request,
    const std::function<absl::Status(const v1::Trial&)>& take,
    CallOptions options) {
  ServerConnection& connection = session_->connection;
  const absl::Duration stall_limit = connection.TimeoutOr(options.timeout);
  int64_t last = 0;
  while (true) {
    const int64_t before = last;
    absl::Status refused;
    const absl::Status status = connection.Repeat(
        Repeatable::kYes, stall_limit, stall_limit, [&](absl::Duration limit) {
          v1::ExportTrialsRequest rest = request;
          if (last > 0) {
            rest.set_filter(request.filter().empty()
                                ? absl::StrCat("number > ", last)
                                : absl::StrCat("(", request.filter(),
                                               ") AND number > ", last));
          }
          return ExportOnce(&connection, rest, limit, take, &last, &refused);
        });
    if (!refused.ok()) return refused;
    // As long as each round gets further, the history is worth waiting for.
    if (status.ok() || last == before || absl::IsInvalidArgument(status)) {
      return status;
    }
  }
}

}  // namespace cubicml
