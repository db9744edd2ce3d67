// SPDX-License-Identifier: Apache-2.0
//
// A study whose every field was checked. It is parsed once, when a study is
// created, changed or loaded; whoever holds one need not check it again.

#ifndef CUBICML_SERVER_CORE_STUDY_DEFINITION_H_
#define CUBICML_SERVER_CORE_STUDY_DEFINITION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/dataset.h"
#include "predictor/featurizer.h"
#include "predictor/metric_bound.h"
#include "predictor/search_space.h"
#include "server/core/request_check.h"

namespace cubicml {

// What the baseline measured in one context, by metric.
using BaselineMetrics = std::map<std::string, double>;

// Immutable and thread-safe.
class StudyDefinition {
 public:
  // INVALID_ARGUMENT naming the field by its path in `study`.
  static absl::StatusOr<std::shared_ptr<const StudyDefinition>> Parse(
      v1::Study study);

  // What is refused of a definition that is new, although one that is stored
  // works: constraints that cannot be meant, unless they are those of `before`,
  // and EXHAUSTIVE for a space that is too large. Counting that may take
  // seconds. INVALID_ARGUMENT as Parse.
  absl::Status CheckNew(const StudyDefinition* before = nullptr) const;

  // OK when trials that have run under `old` stay valid under this one; else
  // FAILED_PRECONDITION naming what may not change.
  absl::Status CheckExtends(const StudyDefinition& old) const;

  const v1::Study& study() const { return study_; }
  const std::string& name() const { return study_.name(); }
  const std::shared_ptr<const SearchSpace>& space() const { return space_; }
  const Featurizer& featurizer() const { return featurizer_; }
  // Objectives first.
  const std::vector<MetricSchema>& metrics() const { return metrics_; }
  size_t objectives() const {
    return static_cast<size_t>(study_.objectives_size());
  }
  bool maximize() const { return metrics_.front().maximize; }
  uint64_t seed() const { return study_.settings().seed(); }
  // Never ALGORITHM_UNSPECIFIED.
  v1::Algorithm algorithm() const;
  absl::Duration lease() const { return lease_; }
  size_t initial_trials() const;
  // Changes whenever what goes into a model does, the columns of the
  // featurizer, or what comes out: a model knows metrics by their index only.
  uint64_t model_fingerprint() const { return model_fingerprint_; }

  // ---- Measurements ----

  // Declared and finite. INVALID_ARGUMENT naming "metrics.NAME".
  absl::Status CheckMetrics(const MetricMap& metrics) const;
  // The first objective that is missing; empty when none is.
  std::string MissingObjective(const MetricMap& metrics) const;
  bool HasAnyObjective(const MetricMap& metrics) const;
  // The first metric with a constraint that is missing; empty when none is.
  std::string MissingConstrained(const MetricMap& metrics) const;
  // In the order of metrics(), NaN where not measured.
  std::vector<double> ParseMetrics(const MetricMap& metrics) const;
  // The metric constraints in numbers, all of one metric as one; without those
  // that wait for a baseline.
  std::vector<MetricBound> Bounds(const BaselineMetrics& baseline) const;
  // Whether any of them waits for a baseline.
  bool HasRelativeBounds() const;
  // Says which metric constraint the measurement violates; nullopt for none.
  std::optional<std::string> FindViolation(
      const MetricMap& metrics, const BaselineMetrics& baseline) const;

 private:
  StudyDefinition(v1::Study study, std::shared_ptr<const SearchSpace> space);

  const v1::Study study_;
  const std::shared_ptr<const SearchSpace> space_;
  const Featurizer featurizer_;
  std::vector<MetricSchema> metrics_;
  std::map<std::string, size_t> metric_index_;
  absl::Duration lease_;
  uint64_t model_fingerprint_ = 0;
};

}  // namespace cubicml

#endif  // CUBICML_SERVER_CORE_STUDY_DEFINITION_H_
