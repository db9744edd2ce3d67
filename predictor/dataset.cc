// SPDX-License-Identifier: Apache-2.0

#include "predictor/dataset.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_macros.h"

namespace cubicml {
namespace {

absl::Status CheckRow(const Dataset& dataset, size_t i) {
  const DatasetRow& row = dataset.rows[i];
  const auto path = [i](const char* field) {
    return absl::StrCat("rows[", i, "].", field);
  };
  if (!std::isfinite(row.weight) || row.weight <= 0.0) {
    return FieldError(path("weight"), "must be finite and positive");
  }
  if (row.metrics.size() > dataset.metrics.size() ||
      (row.feasible && row.metrics.size() != dataset.metrics.size())) {
    return FieldError(path("metrics"), "must be one value for each metric");
  }
  for (const double metric : row.metrics) {
    if (std::isinf(metric)) {
      return FieldError(path("metrics"), "must not be infinite");
    }
  }
  const float* features = dataset.features.row(i);
  for (size_t c = 0; c < dataset.features.columns; ++c) {
    if (!std::isfinite(features[c])) {
      return FieldError(absl::StrCat("features[", i, "][", c, "]"),
                        "must be finite");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDataset(const Dataset& dataset) {
  const FeatureMatrix& features = dataset.features;
  if (dataset.metrics.empty() || !dataset.metrics[0].objective) {
    return FieldError("metrics", "the first must be an objective");
  }
  if (features.rows != dataset.rows.size() ||
      features.values.size() != features.rows * features.columns) {
    return FieldError("features", "must be one row for each of rows");
  }
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    CUBICML_RETURN_IF_ERROR(CheckRow(dataset, i));
  }
  if (dataset.rows.size() < 3) {
    return absl::FailedPreconditionError("fewer than three rows");
  }
  const float* first = nullptr;
  for (size_t i = 0; i < dataset.rows.size(); ++i) {
    const DatasetRow& row = dataset.rows[i];
    if (!row.feasible || std::isnan(row.metrics[0])) continue;
    if (first == nullptr) {
      first = features.row(i);
    } else if (!std::equal(first, first + features.columns, features.row(i))) {
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(
      "fewer than two different feasible configurations were measured");
}

}  // namespace cubicml
