// SPDX-License-Identifier: Apache-2.0

#include "predictor/kernel_regressor.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "predictor/lanes.h"

namespace cubicml {
namespace {

// Share of the prior variance that is always left: rounding would make it 0.
constexpr double kMinVariance = 1e-6;

class KernelRegressor : public Regressor {
 public:
  explicit KernelRegressor(KernelParts parts) : parts_(std::move(parts)) {
    norms_.assign(parts_.rows, 0.0F);
    linear_offsets_.assign(parts_.rows, 0.0F);
    slopes_.resize(parts_.inputs.size());
    whitening_.assign(parts_.rows * parts_.rows, 0.0F);
    const float* triangle = parts_.whitening.data();
    for (size_t i = 0; i < parts_.rows; ++i) {
      std::copy_n(triangle, i + 1, &whitening_[i * parts_.rows]);
      triangle += i + 1;
      for (size_t c = 0; c < parts_.columns; ++c) {
        const float x = parts_.inputs[i * parts_.columns + c];
        const float length = 1.0F / parts_.inverse_lengths[c];
        norms_[i] += x * x;
        // (x - centre) * (x' - centre), as a function of x' / length.
        const float slope = (x * length - parts_.centres[c]) *
                            static_cast<float>(parts_.linear_variance);
        slopes_[i * parts_.columns + c] = slope * length;
        linear_offsets_[i] -= slope * parts_.centres[c];
      }
    }
  }

  void Predict(const FeatureMatrix& features, size_t begin,
               std::span<Belief> beliefs) const override {
    Scratch scratch(parts_.rows, parts_.columns);
    for (size_t done = 0; done < beliefs.size(); done += kLanes) {
      const size_t count = std::min(kLanes, beliefs.size() - done);
      PredictLanes(features, begin + done, beliefs.subspan(done, count),
                   &scratch);
    }
  }

  void Save(internal::Regressor* proto) const override {
    internal::KernelRegressor* kernel = proto->mutable_kernel();
    const KernelParts& p = parts_;
    kernel->set_columns(static_cast<uint32_t>(p.columns));
    kernel->mutable_inverse_lengths()->Add(p.inverse_lengths.begin(),
                                           p.inverse_lengths.end());
    kernel->set_matern_variance(p.matern_variance);
    kernel->set_linear_variance(p.linear_variance);
    kernel->mutable_inputs()->Add(p.inputs.begin(), p.inputs.end());
    kernel->mutable_dual_weights()->Add(p.dual_weights.begin(),
                                        p.dual_weights.end());
    kernel->mutable_whitening()->Add(p.whitening.begin(), p.whitening.end());
    kernel->mutable_centres()->Add(p.centres.begin(), p.centres.end());
  }

 private:
  struct Scratch {
    Scratch(size_t rows, size_t columns)
        : x(columns), k(rows), linear(rows), white(rows) {}
    std::vector<Lanes> x;       // by column, divided by the lengths
    std::vector<Lanes> k;       // covariance with each training row
    std::vector<Lanes> linear;  // its linear part
    std::vector<Lanes> white;   // whitening * k
  };

  void PredictLanes(const FeatureMatrix& features, size_t begin,
                    std::span<Belief> beliefs, Scratch* scratch) const {
    const KernelParts& p = parts_;
    Lanes norm{};
    Lanes own{};
    for (size_t c = 0; c < p.columns; ++c) {
      Lanes& x = scratch->x[c];
      x.fill(0.0F);
      for (size_t l = 0; l < beliefs.size(); ++l) {
        const float value = features.row(begin + l)[c];
        x[l] = value * p.inverse_lengths[c];
        norm[l] += x[l] * x[l];
        own[l] += (value - p.centres[c]) * (value - p.centres[c]);
      }
    }
    FillCovariance(norm, scratch);
    Lanes explained{};
    for (size_t i = 0; i < p.rows; ++i) scratch->white[i].fill(0.0F);
    // The matrix is lower triangular: of each block of rows the columns up to
    // its end.
    constexpr size_t kBlock = 8;
    for (size_t i = 0; i < p.rows; i += kBlock) {
      const size_t end = std::min(i + kBlock, p.rows);
      MultiplyAdd(whitening_.data() + i * p.rows, p.rows, end - i, end,
                  scratch->k.data(), &scratch->white[i]);
    }
    for (const Lanes& white : scratch->white) {
      for (size_t l = 0; l < kLanes; ++l) explained[l] += white[l] * white[l];
    }
    for (size_t l = 0; l < beliefs.size(); ++l) {
      double mean = 0.0;
      for (size_t i = 0; i < p.rows; ++i) {
        mean += p.dual_weights[i] * static_cast<double>(scratch->k[i][l]);
      }
      const double prior =
          p.matern_variance + p.linear_variance * static_cast<double>(own[l]);
      const double variance = prior - static_cast<double>(explained[l]);
      beliefs[l] = {mean, std::sqrt(std::max(variance, kMinVariance * prior))};
    }
  }

  void FillCovariance(const Lanes& norm, Scratch* scratch) const {
    const KernelParts& p = parts_;
    for (size_t i = 0; i < p.rows; ++i) {
      scratch->k[i].fill(0.0F);
      scratch->linear[i].fill(linear_offsets_[i]);
    }
    MultiplyAdd(p.inputs.data(), p.columns, p.rows, p.columns,
                scratch->x.data(), scratch->k.data());
    MultiplyAdd(slopes_.data(), p.columns, p.rows, p.columns, scratch->x.data(),
                scratch->linear.data());
    for (size_t i = 0; i < p.rows; ++i) {
      Lanes& k = scratch->k[i];
      for (size_t l = 0; l < kLanes; ++l) {
        k[l] = norm[l] + norms_[i] - 2.0F * k[l];
      }
    }
    MaternCorrelation(p.rows, scratch->k.data());
    const float matern = static_cast<float>(p.matern_variance);
    for (size_t i = 0; i < p.rows; ++i) {
      Lanes& k = scratch->k[i];
      for (size_t l = 0; l < kLanes; ++l) {
        k[l] = matern * k[l] + scratch->linear[i][l];
      }
    }
  }

  const KernelParts parts_;
  // Derived from parts_: they turn a covariance into two products, and the
  // triangle into a square.
  std::vector<float> norms_;
  std::vector<float> linear_offsets_;
  std::vector<float> slopes_;
  std::vector<float> whitening_;
};

}  // namespace

std::unique_ptr<Regressor> NewKernelRegressor(KernelParts parts) {
  return std::make_unique<KernelRegressor>(std::move(parts));
}

absl::StatusOr<std::unique_ptr<Regressor>> LoadKernelRegressor(
    const internal::KernelRegressor& proto, size_t columns) {
  const size_t rows = static_cast<size_t>(proto.dual_weights_size());
  if (proto.columns() != columns || rows > kMaxKernelRows ||
      static_cast<size_t>(proto.inverse_lengths_size()) != columns ||
      static_cast<size_t>(proto.centres_size()) != columns ||
      static_cast<size_t>(proto.inputs_size()) != rows * columns ||
      static_cast<size_t>(proto.whitening_size()) != rows * (rows + 1) / 2) {
    return absl::DataLossError("a kernel model does not fit together");
  }
  KernelParts parts;
  parts.rows = rows;
  parts.columns = columns;
  parts.inverse_lengths.assign(proto.inverse_lengths().begin(),
                               proto.inverse_lengths().end());
  parts.matern_variance = proto.matern_variance();
  parts.linear_variance = proto.linear_variance();
  parts.inputs.assign(proto.inputs().begin(), proto.inputs().end());
  parts.dual_weights.assign(proto.dual_weights().begin(),
                            proto.dual_weights().end());
  parts.whitening.assign(proto.whitening().begin(), proto.whitening().end());
  parts.centres.assign(proto.centres().begin(), proto.centres().end());
  return NewKernelRegressor(std::move(parts));
}

}  // namespace cubicml
