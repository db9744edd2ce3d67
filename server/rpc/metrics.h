// SPDX-License-Identifier: Apache-2.0
//
// What the server tells Prometheus; docs/operations.md lists it. The only file
// pair that knows prometheus-cpp; metrics_endpoint serves what it renders.

#ifndef CUBICML_SERVER_RPC_METRICS_H_
#define CUBICML_SERVER_RPC_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "server/core/study_service.h"
#include "server/rpc/rpc_environment.h"
#include "storage/commit_observer.h"

namespace cubicml {

// Thread-safe. Studies are labelled by their id without "studies/". Only
// `max_studies` of them get series of their own, the rest share the label
// "other_studies", so that the number of series has a bound.
class ServerMetrics final : public ServiceObserver,
                            public RpcObserver,
                            public CommitObserver {
 public:
  explicit ServerMetrics(size_t max_studies = 1000);
  ~ServerMetrics() override;

  // A value that is read when Prometheus asks. `read` must be quick,
  // thread-safe, and callable until ForgetSources().
  void AddSource(absl::string_view name, absl::string_view help,
                 std::function<double()> read);
  void ForgetSources();

  // RpcObserver:
  void OnRpcDone(absl::string_view method, absl::StatusCode code,
                 absl::Duration duration) override;
  void OnRpcRejected() override;

  // ServiceObserver:
  void OnSuggestion(absl::string_view study, v1::Trial::Source source,
                    absl::Duration thinking_time) override;
  void OnTrialEnded(absl::string_view study, const v1::Trial& trial) override;
  void OnModelTrained(absl::string_view study,
                      const v1::SurrogateQuality& quality) override;
  void OnModelRefused(absl::string_view study,
                      const absl::Status& why) override;
  void OnLeaseExpired(absl::string_view study) override;

  // CommitObserver:
  void OnCommit(size_t operations, absl::Duration latency,
                size_t queue_depth) override;
  void OnWriteFailure(const absl::Status& status) override;

  // Where the studies stand; those that are not among them are forgotten.
  void SetStudies(const std::vector<v1::Study>& studies);

  // Everything in Prometheus' text format.
  std::string Render() const;

 private:
  struct Series;
  const std::unique_ptr<Series> series_;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_METRICS_H_
