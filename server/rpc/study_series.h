// SPDX-License-Identifier: Apache-2.0
//
// The series that exist once for each study, and the bound on their number. A
// part of metrics.cc.

#ifndef CUBICML_SERVER_RPC_STUDY_SERIES_H_
#define CUBICML_SERVER_RPC_STUDY_SERIES_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "cubicml/v1/study.pb.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace cubicml {

// Not thread-safe; `registry` must outlive it. Studies are given by name or
// by id.
class StudySeries {
 public:
  StudySeries(prometheus::Registry* registry, size_t max_studies);

  void CountSuggestion(absl::string_view study, v1::Trial::Source source);
  void CountEndedTrial(absl::string_view study, const v1::Trial& trial);
  void CountRefusedModel(absl::string_view study);
  void CountExpiredLease(absl::string_view study);
  void SetSurrogate(absl::string_view study,
                    const v1::SurrogateQuality& quality);
  // Sets the gauges of these studies and removes all others' series.
  void SetStudies(const std::vector<v1::Study>& studies);

 private:
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Counters = prometheus::Family<prometheus::Counter>;

  // What one study has in the families, to be found again and removed.
  struct Study {
    std::map<std::pair<Gauges*, std::string>, prometheus::Gauge*> gauges;
    std::map<std::pair<Counters*, std::string>, prometheus::Counter*> counters;
  };

  // The label of the study: its id, or "other" beyond the bound.
  std::string Label(absl::string_view study);
  void Increment(Counters* family, absl::string_view study,
                 const prometheus::Labels& more_labels = {});
  void Set(Gauges* family, absl::string_view study, double value,
           const prometheus::Labels& more_labels = {});
  void Remove(const Study& study);

  const size_t max_studies_;
  Gauges& trials_;
  Counters& trials_ended_;
  Counters& suggestions_;
  Gauges& baseline_;
  Gauges& best_;
  Gauges& speedup_;
  Gauges& kendall_tau_;
  Gauges& coverage_;
  Gauges& rows_;
  Gauges& created_;
  Counters& refused_;
  Counters& leases_expired_;
  std::map<std::string, Study> studies_;  // by label
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_RPC_STUDY_SERIES_H_
