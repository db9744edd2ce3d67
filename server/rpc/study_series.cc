// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/study_series.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace cubicml {
namespace {

constexpr absl::string_view kOther = "other_studies";

prometheus::Family<prometheus::Gauge>& GaugeFamily(
    prometheus::Registry* registry, absl::string_view name,
    absl::string_view help) {
  return prometheus::BuildGauge()
      .Name(std::string(name))
      .Help(std::string(help))
      .Register(*registry);
}

prometheus::Family<prometheus::Counter>& CounterFamily(
    prometheus::Registry* registry, absl::string_view name,
    absl::string_view help) {
  return prometheus::BuildCounter()
      .Name(std::string(name))
      .Help(std::string(help))
      .Register(*registry);
}

// "OUT_OF_MEMORY" as Prometheus' users write it.
std::string LabelValue(absl::string_view enumerator) {
  return absl::AsciiStrToLower(enumerator);
}

std::string ReasonLabel(const v1::Trial& trial) {
  if (trial.reason() == v1::Trial::REASON_UNSPECIFIED) return "none";
  return LabelValue(v1::Trial::Reason_Name(trial.reason()));
}

// Tells apart the series that a study has in one family.
std::string Key(const prometheus::Labels& labels) {
  std::string key;
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&key, name, "=", value, ";");
  }
  return key;
}

}  // namespace

StudySeries::StudySeries(prometheus::Registry* registry, size_t max_studies)
    : max_studies_(max_studies),
      trials_(GaugeFamily(registry, "cubicml_trials",
                          "Trials of a study, by state.")),
      trials_ended_(CounterFamily(registry, "cubicml_trials_ended_total",
                                  "Trials that ended since the start.")),
      suggestions_(CounterFamily(registry, "cubicml_suggestions_total",
                                 "Configurations handed out, by source.")),
      baseline_(GaugeFamily(registry, "cubicml_study_baseline_objective",
                            "First objective of the baseline.")),
      best_(GaugeFamily(registry, "cubicml_study_best_objective",
                        "Best first objective measured.")),
      speedup_(GaugeFamily(registry, "cubicml_study_speedup_ratio",
                           "Best over baseline; 1.25 is 25 % faster.")),
      kendall_tau_(GaugeFamily(registry, "cubicml_surrogate_kendall_tau",
                               "Held-out rank correlation of the model.")),
      coverage_(GaugeFamily(registry, "cubicml_surrogate_coverage_ratio",
                            "Share of held-out measurements inside their 90 % "
                            "interval.")),
      rows_(GaugeFamily(registry, "cubicml_surrogate_rows",
                        "Trials that the model was trained on.")),
      created_(GaugeFamily(registry,
                           "cubicml_surrogate_created_timestamp_seconds",
                           "When the model was trained.")),
      refused_(CounterFamily(registry, "cubicml_surrogate_refused_total",
                             "Models that were trained and not used.")),
      leases_expired_(CounterFamily(registry, "cubicml_leases_expired_total",
                                    "Trials whose holder fell silent.")) {}

std::string StudySeries::Label(absl::string_view study) {
  std::string label(absl::StripPrefix(study, "studies/"));
  if (studies_.count(label) > 0) return label;
  if (studies_.size() - studies_.count(std::string(kOther)) >= max_studies_) {
    label = std::string(kOther);
  }
  studies_[label];
  return label;
}

void StudySeries::Increment(Counters* family, absl::string_view study,
                            const prometheus::Labels& more_labels) {
  const std::string label = Label(study);
  prometheus::Counter*& counter =
      studies_[label].counters[{family, Key(more_labels)}];
  if (counter == nullptr) {
    prometheus::Labels labels = more_labels;
    labels["study"] = label;
    counter = &family->Add(labels);
  }
  counter->Increment();
}

void StudySeries::Set(Gauges* family, absl::string_view study, double value,
                      const prometheus::Labels& more_labels) {
  const std::string label = Label(study);
  // One number for many studies would mean nothing.
  if (label == kOther) return;
  prometheus::Gauge*& gauge =
      studies_[label].gauges[{family, Key(more_labels)}];
  if (gauge == nullptr) {
    prometheus::Labels labels = more_labels;
    labels["study"] = label;
    gauge = &family->Add(labels);
  }
  gauge->Set(value);
}

void StudySeries::Remove(const Study& study) {
  for (const auto& [key, gauge] : study.gauges) key.first->Remove(gauge);
  for (const auto& [key, counter] : study.counters) key.first->Remove(counter);
}

void StudySeries::CountSuggestion(absl::string_view study,
                                  v1::Trial::Source source) {
  Increment(&suggestions_, study,
            {{"source", LabelValue(v1::Trial::Source_Name(source))}});
}

void StudySeries::CountEndedTrial(absl::string_view study,
                                  const v1::Trial& trial) {
  Increment(&trials_ended_, study,
            {{"state", LabelValue(v1::Trial::State_Name(trial.state()))},
             {"reason", ReasonLabel(trial)}});
}

void StudySeries::CountRefusedModel(absl::string_view study) {
  Increment(&refused_, study);
}

void StudySeries::CountExpiredLease(absl::string_view study) {
  Increment(&leases_expired_, study);
}

void StudySeries::SetSurrogate(absl::string_view study,
                               const v1::SurrogateQuality& quality) {
  const v1::SurrogateQuality& q = quality;
  if (q.has_kendall_tau()) Set(&kendall_tau_, study, q.kendall_tau());
  if (q.has_coverage90()) Set(&coverage_, study, q.coverage90());
  Set(&rows_, study, static_cast<double>(q.rows()));
  Set(&created_, study, static_cast<double>(q.create_time().seconds()));
}

void StudySeries::SetStudies(const std::vector<v1::Study>& studies) {
  std::set<std::string> living = {std::string(kOther)};
  for (const v1::Study& study : studies) {
    living.emplace(absl::StripPrefix(study.name(), "studies/"));
  }
  for (auto it = studies_.begin(); it != studies_.end();) {
    if (living.count(it->first) > 0) {
      ++it;
    } else {
      Remove(it->second);
      it = studies_.erase(it);
    }
  }
  for (const v1::Study& study : studies) {
    const v1::StudyProgress& p = study.progress();
    const int64_t lost = p.trials() - p.active_trials() - p.succeeded_trials() -
                         p.infeasible_trials();
    const std::pair<const char*, int64_t> states[] = {
        {"active", p.active_trials()},
        {"succeeded", p.succeeded_trials()},
        {"infeasible", p.infeasible_trials()},
        {"lost", lost}};
    for (const auto& [state, count] : states) {
      Set(&trials_, study.name(), static_cast<double>(count),
          {{"state", state}});
    }
    if (p.has_baseline_objective()) {
      Set(&baseline_, study.name(), p.baseline_objective());
    }
    if (p.has_best_objective()) Set(&best_, study.name(), p.best_objective());
    if (p.has_speedup()) Set(&speedup_, study.name(), p.speedup());
    if (p.surrogate().model_version() > 0) {
      SetSurrogate(study.name(), p.surrogate());
    }
  }
}

}  // namespace cubicml
