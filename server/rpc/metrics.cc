// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/metrics.h"

#include <map>
#include <utility>

#include "base/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "server/rpc/study_series.h"

namespace cubicml {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;

using Buckets = Histogram::BucketBoundaries;

Buckets RpcBuckets() {
  return {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
          0.2,    0.5,   1.0,   2.0,   5.0,  10.0, 30.0};
}
Buckets CommitBuckets() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01,
          0.02,   0.05,   0.1,    0.2,   0.5,   1.0,   5.0};
}
Buckets GroupBuckets() { return {1, 2, 4, 8, 16, 32, 64, 128, 256}; }
Buckets TrainingBuckets() {
  return {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600};
}

}  // namespace

struct ServerMetrics::Series {
  explicit Series(size_t max_studies) : studies(&registry, max_studies) {}

  // What one call counts into. Codes are added as they occur.
  struct Method {
    Histogram* duration = nullptr;
    std::map<absl::StatusCode, Counter*> requests;
  };
  struct Source {
    std::string name;
    std::string help;
    std::function<double()> read;
  };

  prometheus::Registry registry;
  Family<Counter>& rpc_requests =
      BuildCounter()
          .Name("cubicml_rpc_requests_total")
          .Help("Calls that have ended, by method and status code.")
          .Register(registry);
  Family<Histogram>& rpc_duration =
      BuildHistogram()
          .Name("cubicml_rpc_duration_seconds")
          .Help("From the arrival of a call to its answer.")
          .Register(registry);
  Counter& rpc_rejected =
      BuildCounter()
          .Name("cubicml_rpc_rejected_total")
          .Help("Calls refused because too many were waiting.")
          .Register(registry)
          .Add({});
  Histogram& suggestion_duration =
      BuildHistogram()
          .Name("cubicml_suggestion_duration_seconds")
          .Help("Time to think of one suggestion.")
          .Register(registry)
          .Add({}, RpcBuckets());
  Histogram& training_duration =
      BuildHistogram()
          .Name("cubicml_surrogate_training_duration_seconds")
          .Help("Time to train one surrogate.")
          .Register(registry)
          .Add({}, TrainingBuckets());
  Histogram& commit_duration =
      BuildHistogram()
          .Name("cubicml_commit_duration_seconds")
          .Help("Time to make one group of writes durable.")
          .Register(registry)
          .Add({}, CommitBuckets());
  Histogram& commit_group_size = BuildHistogram()
                                     .Name("cubicml_commit_group_size")
                                     .Help("Writes that shared one commit.")
                                     .Register(registry)
                                     .Add({}, GroupBuckets());

  prometheus::Gauge& commit_queue_depth =
      BuildGauge()
          .Name("cubicml_commit_queue_depth")
          .Help("Writes that were waiting when the last commit ended.")
          .Register(registry)
          .Add({});
  Counter& write_failures =
      BuildCounter()
          .Name("cubicml_write_failures_total")
          .Help("Groups of writes that failed as a whole.")
          .Register(registry)
          .Add({});

  mutable Mutex mu;
  std::map<std::string, Method, std::less<>> methods ABSL_GUARDED_BY(mu);
  std::vector<Source> sources ABSL_GUARDED_BY(mu);
  StudySeries studies ABSL_GUARDED_BY(mu);
};

ServerMetrics::ServerMetrics(size_t max_studies)
    : series_(std::make_unique<Series>(max_studies)) {
  BuildGauge()
      .Name("cubicml_build_info")
      .Help("Always 1; the label tells the version.")
      .Register(series_->registry)
      .Add({{"version", CUBICML_VERSION}})
      .Set(1);
}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::AddSource(absl::string_view name, absl::string_view help,
                              std::function<double()> read) {
  MutexLock lock(&series_->mu);
  series_->sources.push_back(
      {std::string(name), std::string(help), std::move(read)});
}

void ServerMetrics::ForgetSources() {
  MutexLock lock(&series_->mu);
  series_->sources.clear();
}

void ServerMetrics::OnRpcDone(absl::string_view method, absl::StatusCode code,
                              absl::Duration duration) {
  const std::string name(method);
  MutexLock lock(&series_->mu);
  Series::Method& counts = series_->methods[name];
  if (counts.duration == nullptr) {
    counts.duration =
        &series_->rpc_duration.Add({{"method", name}}, RpcBuckets());
  }
  Counter*& requests = counts.requests[code];
  if (requests == nullptr) {
    requests = &series_->rpc_requests.Add(
        {{"method", name}, {"code", absl::StatusCodeToString(code)}});
  }
  requests->Increment();
  counts.duration->Observe(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::OnRpcRejected() { series_->rpc_rejected.Increment(); }

void ServerMetrics::OnSuggestion(absl::string_view study,
                                 v1::Trial::Source source,
                                 absl::Duration thinking_time) {
  series_->suggestion_duration.Observe(absl::ToDoubleSeconds(thinking_time));
  MutexLock lock(&series_->mu);
  series_->studies.CountSuggestion(study, source);
}

void ServerMetrics::OnTrialEnded(absl::string_view study,
                                 const v1::Trial& trial) {
  MutexLock lock(&series_->mu);
  series_->studies.CountEndedTrial(study, trial);
}

void ServerMetrics::OnModelTrained(absl::string_view study,
                                   const v1::SurrogateQuality& quality) {
  const v1::SurrogateQuality& q = quality;
  series_->training_duration.Observe(
      static_cast<double>(q.training_time().seconds()) +
      static_cast<double>(q.training_time().nanos()) * 1e-9);
  MutexLock lock(&series_->mu);
  series_->studies.SetSurrogate(study, quality);
}

void ServerMetrics::OnModelRefused(absl::string_view study,
                                   const absl::Status&) {
  MutexLock lock(&series_->mu);
  series_->studies.CountRefusedModel(study);
}

void ServerMetrics::OnLeaseExpired(absl::string_view study) {
  MutexLock lock(&series_->mu);
  series_->studies.CountExpiredLease(study);
}

void ServerMetrics::OnCommit(size_t operations, absl::Duration latency,
                             size_t queue_depth) {
  series_->commit_duration.Observe(absl::ToDoubleSeconds(latency));
  series_->commit_group_size.Observe(static_cast<double>(operations));
  series_->commit_queue_depth.Set(static_cast<double>(queue_depth));
}

void ServerMetrics::OnWriteFailure(const absl::Status&) {
  series_->write_failures.Increment();
}

void ServerMetrics::SetStudies(const std::vector<v1::Study>& studies) {
  MutexLock lock(&series_->mu);
  series_->studies.SetStudies(studies);
}

std::string ServerMetrics::Render() const {
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  MutexLock lock(&series_->mu);
  for (const Series::Source& source : series_->sources) {
    prometheus::ClientMetric metric;
    metric.gauge.value = source.read();
    families.push_back({source.name,
                        source.help,
                        prometheus::MetricType::Gauge,
                        {std::move(metric)}});
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace cubicml
