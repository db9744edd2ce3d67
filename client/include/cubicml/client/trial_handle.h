// SPDX-License-Identifier: Apache-2.0
//
// A trial that this process is running: made by TuningClient::StartTrial().

#ifndef CUBICML_CLIENT_TRIAL_HANDLE_H_
#define CUBICML_CLIENT_TRIAL_HANDLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cubicml/client/values.h"
#include "cubicml/v1/study.pb.h"

namespace cubicml {

class ActiveTrial;

// By name of the metric, in the unit that the study declares.
using Metrics = std::map<std::string, double>;

// Owns the trial: its lease is renewed in the background (one thread for all
// trials of a client) until it is completed, and a handle that is destroyed
// before that reports ABANDONED, within TuningClientOptions::abandon_timeout.
// Nothing here throws.
//
// Thread-safe but for moving and destroying. May outlive its TuningClient.
//
//   CUBICML_ASSIGN_OR_RETURN(TrialHandle trial, client->StartTrial(request));
//   CUBICML_ASSIGN_OR_RETURN(int64_t batch, trial.Get<int64_t>("batch_size"));
//   while (training && !trial.should_stop()) {
//     ...
//     trial.Report(step, {{"qps", qps}});
//   }
//   CUBICML_RETURN_IF_ERROR(trial.Complete({{"qps", qps}}).status());
class TrialHandle {
 public:
  explicit TrialHandle(std::unique_ptr<ActiveTrial> trial);
  TrialHandle(TrialHandle&& other) noexcept;
  TrialHandle& operator=(TrialHandle&& other) noexcept;
  ~TrialHandle();

  // The trial as it was handed out.
  const v1::Trial& trial() const;
  const std::string& name() const { return trial().name(); }

  // A parameter of the configuration; see GetValue().
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view parameter) const {
    return GetValue<T>(trial().parameters(), parameter);
  }

  // The service asks to end the trial early: it was cancelled, or is not worth
  // finishing. Complete it with what was measured, or abandon it.
  bool should_stop() const;

  // Notes an intermediate measurement, which a heartbeat carries to the service
  // within seconds. Does not wait; only the latest one counts.
  void Report(int64_t step, const Metrics& metrics);

  // The three ways to end a trial; each returns it as the service stored it.
  // After one that succeeded the others are FAILED_PRECONDITION. When one
  // fails with another error the trial is still held: try again, or let the
  // handle abandon it. An error that names a field is INVALID_ARGUMENT (an
  // unknown metric, a number that is not finite).
  //
  // Complete: it was measured. Needs every objective of the study; without any
  // the service makes it INFEASIBLE, NO_MEASUREMENT.
  absl::StatusOr<v1::Trial> Complete(const Metrics& metrics);
  // Fail: this configuration does not work, which the service learns from.
  // `metrics` may hold what was measured before, such as the peak memory.
  absl::StatusOr<v1::Trial> Fail(v1::Trial::Reason reason,
                                 absl::string_view detail,
                                 const Metrics& metrics = {});
  // Abandon: the job was lost, which says nothing about the configuration.
  absl::StatusOr<v1::Trial> Abandon(v1::Trial::Reason reason,
                                    absl::string_view detail);

  // Leaves the trial to its lease: no more heartbeats, no report. For a result
  // that another process will deliver.
  void Release();

 private:
  std::unique_ptr<ActiveTrial> trial_;  // null when moved from
};

}  // namespace cubicml

#endif  // CUBICML_CLIENT_TRIAL_HANDLE_H_
