// SPDX-License-Identifier: Apache-2.0

#include "server/core/study_definition.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/stable_hash.h"
#include "base/status_macros.h"
#include "predictor/constraint_check.h"
#include "server/core/resource_name.h"

namespace cubicml {
namespace {

constexpr size_t kMaxDisplayNameBytes = 200;
constexpr size_t kMaxDescriptionBytes = 1024;
constexpr size_t kMaxUnitBytes = 64;
constexpr int kMaxObjectives = 8;
constexpr int kMaxMetrics = 64;
constexpr int kMaxMetricConstraints = 64;
constexpr int kMaxInitialTrials = 1000;
constexpr int kMinInitialTrials = 4;
constexpr int kMaxChosenInitialTrials = 12;
constexpr absl::Duration kDefaultLease = absl::Minutes(10);
constexpr absl::Duration kMinLease = absl::Seconds(1);
constexpr absl::Duration kMaxLease = absl::Hours(24 * 30);
// EXHAUSTIVE refuses spaces with more valid configurations than this.
constexpr int64_t kMaxExhaustivePoints = 10'000'000;
constexpr int64_t kMaxExhaustiveSteps = 2 * kMaxExhaustivePoints;

absl::Status CheckMetric(absl::string_view field, const v1::Metric& metric,
                         std::set<std::string>* names) {
  CUBICML_RETURN_IF_ERROR(
      CheckIdentifier(absl::StrCat(field, ".name"), metric.name()));
  CUBICML_RETURN_IF_ERROR(
      CheckText(absl::StrCat(field, ".unit"), metric.unit(), kMaxUnitBytes));
  CUBICML_RETURN_IF_ERROR(CheckText(absl::StrCat(field, ".description"),
                                    metric.description(),
                                    kMaxDescriptionBytes));
  if (!names->insert(metric.name()).second) {
    return FieldError(absl::StrCat(field, ".name"),
                      absl::StrCat("'", metric.name(), "' is declared twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view field, int count, int max) {
  if (count <= max) return absl::OkStatus();
  return FieldError(field, absl::StrCat("has ", count, " entries, at most ",
                                        max, " are allowed"));
}

// Objectives and metrics; `names` receives their names.
absl::Status CheckAllMetrics(const v1::Study& study,
                             std::set<std::string>* names) {
  if (study.objectives().empty()) {
    return FieldError("objectives", "at least one is needed");
  }
  CUBICML_RETURN_IF_ERROR(
      CheckCount("objectives", study.objectives_size(), kMaxObjectives));
  CUBICML_RETURN_IF_ERROR(
      CheckCount("metrics", study.metrics_size(), kMaxMetrics));
  for (int i = 0; i < study.objectives_size(); ++i) {
    const v1::Objective& objective = study.objectives(i);
    const std::string field = absl::StrCat("objectives[", i, "]");
    CUBICML_RETURN_IF_ERROR(
        CheckMetric(absl::StrCat(field, ".metric"), objective.metric(), names));
    if (objective.goal() != v1::MAXIMIZE && objective.goal() != v1::MINIMIZE) {
      return FieldError(absl::StrCat(field, ".goal"),
                        "must be MAXIMIZE or MINIMIZE");
    }
  }
  for (int i = 0; i < study.metrics_size(); ++i) {
    CUBICML_RETURN_IF_ERROR(
        CheckMetric(absl::StrCat("metrics[", i, "]"), study.metrics(i), names));
  }
  return absl::OkStatus();
}

absl::Status CheckMetricConstraint(const std::string& field,
                                   const v1::MetricConstraint& constraint,
                                   const std::set<std::string>& names) {
  if (!names.contains(constraint.metric())) {
    return FieldError(absl::StrCat(field, ".metric"),
                      "must be the name of an objective or a metric");
  }
  if (!constraint.has_min() && !constraint.has_max()) {
    return FieldError(field, "needs min or max");
  }
  if (constraint.has_min() && !std::isfinite(constraint.min())) {
    return FieldError(absl::StrCat(field, ".min"), "must be finite");
  }
  if (constraint.has_max() && !std::isfinite(constraint.max())) {
    return FieldError(absl::StrCat(field, ".max"), "must be finite");
  }
  if (constraint.has_min() && constraint.has_max() &&
      constraint.min() > constraint.max()) {
    return FieldError(absl::StrCat(field, ".max"),
                      absl::StrCat("is below min, ", constraint.min()));
  }
  return absl::OkStatus();
}

absl::Status CheckLease(const google::protobuf::Duration& lease) {
  // The ranges that google.protobuf.Duration documents.
  const bool sane = lease.seconds() >= 0 && lease.nanos() >= 0 &&
                    lease.nanos() < 1'000'000'000 &&
                    lease.seconds() <= absl::ToInt64Seconds(kMaxLease);
  const absl::Duration value =
      absl::Seconds(lease.seconds()) + absl::Nanoseconds(lease.nanos());
  if (sane && value >= kMinLease && value <= kMaxLease) {
    return absl::OkStatus();
  }
  return FieldError("settings.lease", "must be between 1 second and 30 days");
}

absl::Status CheckSettings(const v1::StudySettings& settings) {
  if (!v1::Algorithm_IsValid(settings.algorithm())) {
    return FieldError("settings.algorithm", "is not one that exists");
  }
  if (settings.has_lease()) {
    CUBICML_RETURN_IF_ERROR(CheckLease(settings.lease()));
  }
  if (settings.initial_trials() < 0 ||
      settings.initial_trials() > kMaxInitialTrials) {
    return FieldError(
        "settings.initial_trials",
        absl::StrCat("must be between 0 and ", kMaxInitialTrials));
  }
  return absl::OkStatus();
}

// Everything but the search space.
absl::Status CheckStudy(const v1::Study& study) {
  CUBICML_RETURN_IF_ERROR(CheckStudyName("name", study.name()));
  CUBICML_RETURN_IF_ERROR(
      CheckText("display_name", study.display_name(), kMaxDisplayNameBytes));
  std::set<std::string> names;
  CUBICML_RETURN_IF_ERROR(CheckAllMetrics(study, &names));
  CUBICML_RETURN_IF_ERROR(CheckCount("metric_constraints",
                                     study.metric_constraints_size(),
                                     kMaxMetricConstraints));
  for (int i = 0; i < study.metric_constraints_size(); ++i) {
    CUBICML_RETURN_IF_ERROR(
        CheckMetricConstraint(absl::StrCat("metric_constraints[", i, "]"),
                              study.metric_constraints(i), names));
  }
  CUBICML_RETURN_IF_ERROR(CheckSettings(study.settings()));
  return CheckLabels("labels", study.labels());
}

bool IsConstrained(const v1::Study& study) {
  return !study.constraints().empty() ||
         std::any_of(study.parameters().begin(), study.parameters().end(),
                     [](const v1::Parameter& parameter) {
                       return !parameter.active_if().empty();
                     });
}

template <typename Messages>
bool AreEqual(const Messages& a, const Messages& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return google::protobuf::util::MessageDifferencer::Equals(x, y);
      });
}

absl::Status CheckExhaustive(const SearchSpace& space, bool constrained) {
  double combinations = 1.0;
  for (const Knob& knob : space.knobs()) {
    combinations *= static_cast<double>(knob.levels.size());
  }
  if (combinations <= static_cast<double>(kMaxExhaustivePoints)) {
    return absl::OkStatus();
  }
  // How many configurations a context leaves is known only when a suggestion is
  // asked for; the searcher refuses then.
  if (constrained && !space.context_fields().empty()) return absl::OkStatus();
  // Counting takes seconds; without constraints there is nothing to count.
  if (constrained) {
    CUBICML_ASSIGN_OR_RETURN(const Context context, space.ParseContext({}));
    int64_t points = 0;
    const bool all = space.Enumerate(
        context, space.Free(), kMaxExhaustiveSteps,
        [&](const Point&) { return ++points <= kMaxExhaustivePoints; });
    if (all) return absl::OkStatus();
  }
  return FieldError(
      "settings.algorithm",
      absl::StrCat("EXHAUSTIVE needs a space of at most ", kMaxExhaustivePoints,
                   " valid configurations; use DEFAULT"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StudyDefinition>> StudyDefinition::Parse(
    v1::Study study) {
  CUBICML_RETURN_IF_ERROR(CheckStudy(study));
  CUBICML_ASSIGN_OR_RETURN(std::shared_ptr<const SearchSpace> space,
                           SearchSpace::Parse(study));
  return std::shared_ptr<const StudyDefinition>(
      new StudyDefinition(std::move(study), std::move(space)));
}

absl::Status StudyDefinition::CheckNew(const StudyDefinition* before) const {
  const bool same_constraints =
      before != nullptr &&
      AreEqual(study_.constraints(), before->study_.constraints());
  if (!same_constraints) CUBICML_RETURN_IF_ERROR(CheckNewConstraints(study_));
  if (study_.settings().algorithm() != v1::EXHAUSTIVE) return absl::OkStatus();
  if (same_constraints && before->algorithm() == v1::EXHAUSTIVE &&
      AreEqual(study_.parameters(), before->study_.parameters()) &&
      AreEqual(study_.context(), before->study_.context())) {
    return absl::OkStatus();
  }
  return CheckExhaustive(*space_, IsConstrained(study_));
}

namespace {

// All that says what a model's inputs and outputs mean: a column of the
// featurizer is scaled by the domain of its parameter, and categories and
// metrics are known by their place.
std::string DescribeModel(const v1::Study& study,
                          const std::vector<MetricSchema>& metrics) {
  std::string text = absl::StrCat(Featurizer::kVersion);
  for (v1::Parameter parameter : study.parameters()) {
    parameter.clear_default_value();
    parameter.clear_description();
    parameter.clear_unit();
    absl::StrAppend(&text, "\nparameter ", parameter.SerializeAsString());
  }
  for (const v1::ContextField& field : study.context()) {
    absl::StrAppend(&text, "\ncontext ", field.name(), " ", field.type(), " ",
                    field.optional());
  }
  for (const MetricSchema& metric : metrics) {
    absl::StrAppend(&text, "\nmetric ", metric.name, " ", metric.objective, " ",
                    metric.maximize);
  }
  return text;
}

// What the numbers of a constraint are multiples of; nullopt while that is not
// known.
std::optional<double> UnitOf(const v1::MetricConstraint& constraint,
                             const BaselineMetrics& baseline) {
  if (!constraint.relative_to_baseline()) return 1.0;
  const auto reference = baseline.find(constraint.metric());
  if (reference == baseline.end()) return std::nullopt;
  return reference->second;
}

}  // namespace

StudyDefinition::StudyDefinition(v1::Study study,
                                 std::shared_ptr<const SearchSpace> space)
    : study_(std::move(study)), space_(std::move(space)), featurizer_(space_) {
  for (const v1::Objective& objective : study_.objectives()) {
    metrics_.push_back(
        {objective.metric().name(), true, objective.goal() == v1::MAXIMIZE});
  }
  for (const v1::Metric& metric : study_.metrics()) {
    metrics_.push_back({metric.name(), false, true});
  }
  for (size_t i = 0; i < metrics_.size(); ++i) {
    metric_index_[metrics_[i].name] = i;
  }
  lease_ = kDefaultLease;
  if (study_.settings().has_lease()) {
    lease_ = absl::Seconds(study_.settings().lease().seconds()) +
             absl::Nanoseconds(study_.settings().lease().nanos());
  }
  model_fingerprint_ = StableHash(DescribeModel(study_, metrics_));
}

absl::Status StudyDefinition::CheckExtends(const StudyDefinition& old) const {
  for (const MetricSchema& metric : old.metrics_) {
    if (!metric_index_.contains(metric.name)) {
      return absl::FailedPreconditionError(
          absl::StrCat("study.metrics: '", metric.name,
                       "' cannot be removed, trials may have measured it"));
    }
  }
  if (seed() != old.seed()) {
    return absl::FailedPreconditionError(
        "study.settings.seed: cannot be changed, suggestions that were made "
        "could not be replayed");
  }
  return space_->CheckExtends(*old.space_);
}

v1::Algorithm StudyDefinition::algorithm() const {
  const v1::Algorithm algorithm = study_.settings().algorithm();
  return algorithm == v1::ALGORITHM_UNSPECIFIED ? v1::DEFAULT : algorithm;
}

size_t StudyDefinition::initial_trials() const {
  if (study_.settings().initial_trials() > 0) {
    return static_cast<size_t>(study_.settings().initial_trials());
  }
  return std::clamp<size_t>(space_->knobs().size(), kMinInitialTrials,
                            kMaxChosenInitialTrials);
}

absl::Status StudyDefinition::CheckMetrics(const MetricMap& metrics) const {
  for (const auto& [name, value] : metrics) {
    // The name is not echoed: it may be of any length and any bytes.
    if (!metric_index_.contains(name)) {
      CUBICML_RETURN_IF_ERROR(CheckIdentifier("metrics", name));
      return FieldError(
          absl::StrCat("metrics.", name),
          absl::StrCat("'", name, "' is no metric that the study declares"));
    }
    if (!std::isfinite(value)) {
      return FieldError(absl::StrCat("metrics.", name),
                        "must be finite; a job that diverged is INFEASIBLE");
    }
  }
  return absl::OkStatus();
}

std::string StudyDefinition::MissingObjective(const MetricMap& metrics) const {
  for (const MetricSchema& metric : metrics_) {
    if (metric.objective && !metrics.contains(metric.name)) return metric.name;
  }
  return "";
}

bool StudyDefinition::HasAnyObjective(const MetricMap& metrics) const {
  return std::any_of(metrics_.begin(), metrics_.end(),
                     [&](const MetricSchema& metric) {
                       return metric.objective && metrics.contains(metric.name);
                     });
}

std::string StudyDefinition::MissingConstrained(
    const MetricMap& metrics) const {
  for (const v1::MetricConstraint& constraint : study_.metric_constraints()) {
    if (!metrics.contains(constraint.metric())) return constraint.metric();
  }
  return "";
}

std::vector<double> StudyDefinition::ParseMetrics(
    const MetricMap& metrics) const {
  std::vector<double> values(metrics_.size(),
                             std::numeric_limits<double>::quiet_NaN());
  for (const auto& [name, value] : metrics) {
    const auto it = metric_index_.find(name);
    if (it != metric_index_.end()) values[it->second] = value;
  }
  return values;
}

std::vector<MetricBound> StudyDefinition::Bounds(
    const BaselineMetrics& baseline) const {
  std::map<size_t, MetricBound> bounds;
  for (const v1::MetricConstraint& constraint : study_.metric_constraints()) {
    const std::optional<double> unit = UnitOf(constraint, baseline);
    if (!unit.has_value()) continue;
    const size_t metric = metric_index_.at(constraint.metric());
    MetricBound& bound = bounds.try_emplace(metric, metric).first->second;
    if (constraint.has_min()) {
      bound.min = std::max(bound.min, constraint.min() * *unit);
    }
    if (constraint.has_max()) {
      bound.max = std::min(bound.max, constraint.max() * *unit);
    }
  }
  std::vector<MetricBound> merged;
  for (const auto& [metric, bound] : bounds) merged.push_back(bound);
  return merged;
}

bool StudyDefinition::HasRelativeBounds() const {
  return std::any_of(study_.metric_constraints().begin(),
                     study_.metric_constraints().end(),
                     [](const v1::MetricConstraint& constraint) {
                       return constraint.relative_to_baseline();
                     });
}

std::optional<std::string> StudyDefinition::FindViolation(
    const MetricMap& metrics, const BaselineMetrics& baseline) const {
  for (const v1::MetricConstraint& constraint : study_.metric_constraints()) {
    const auto measured = metrics.find(constraint.metric());
    if (measured == metrics.end()) continue;
    const std::optional<double> known = UnitOf(constraint, baseline);
    if (!known.has_value()) continue;
    const double unit = *known;
    const double value = measured->second;
    const auto describe = [&](absl::string_view relation, double factor) {
      return absl::StrCat(constraint.metric(), " = ", value, " is ", relation,
                          " ", factor * unit,
                          constraint.relative_to_baseline()
                              ? absl::StrCat(" = ", factor, " * baseline")
                              : "");
    };
    if (constraint.has_max() && value > constraint.max() * unit) {
      return describe("above", constraint.max());
    }
    if (constraint.has_min() && value < constraint.min() * unit) {
      return describe("below", constraint.min());
    }
  }
  return std::nullopt;
}

}  // namespace cubicml
