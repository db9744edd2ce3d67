// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/click_log.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cubicml::dlrm {
namespace {

// How skewed the categories are: the r-th most frequent one of a table comes
// with a probability proportional to r^-1.05, about what click logs show.
constexpr double kZipfExponent = 1.05;

// The finaliser of splitmix64: a cheap bijection whose output looks random.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Random numbers of one sample. Constructing one costs a few instructions,
// which is what lets every sample have its own.
class SampleRng {
 public:
  explicit SampleRng(uint64_t key) : state_(key) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15U;
    return Mix(state_);
  }

  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }

  // Close to a standard normal: the sum of four uniform 16-bit numbers.
  float Normal() {
    const uint64_t bits = Next();
    const uint64_t sum = (bits & 0xffffU) + ((bits >> 16U) & 0xffffU) +
                         ((bits >> 32U) & 0xffffU) + (bits >> 48U);
    // Mean 2 * 65535, standard deviation 65536 / sqrt(3).
    return (static_cast<float>(sum) - 131070.0F) * (1.7320508F / 65536.0F);
  }

 private:
  uint64_t state_;
};

// Uniform in [0, bound), from 64 random bits, without a division.
uint64_t Scale(uint64_t bits, uint64_t bound) {
  return ((bits >> 32U) * bound) >> 32U;
}

// The most frequent categories first: inverts the cumulative distribution of
// the continuous power law on [1, rows + 1), where `scale` is
// (rows + 1)^(1 - s) - 1.
uint64_t ZipfRank(double uniform, double scale, uint64_t rows) {
  const double x = std::pow(1.0 + uniform * scale, 1.0 / (1.0 - kZipfExponent));
  return std::min(static_cast<uint64_t>(x), rows) - 1;
}

// What the teacher knows about one category: how much it draws clicks by
// itself, and how much together with a category of the next table.
struct Taste {
  float alone;
  float paired;
};

Taste TasteOf(uint64_t table_key, uint64_t row) {
  const uint64_t bits = Mix(table_key ^ (row * 0xd1342543de82ef95U));
  // Uniform with variance 1.
  constexpr float kScale = 1.7320508F * 0x1.0p-31F;
  return {
      static_cast<float>(static_cast<int32_t>(bits >> 32U)) * kScale,
      static_cast<float>(static_cast<int32_t>(bits & 0xffffffffU)) * kScale};
}

}  // namespace

ClickLog::ClickLog(const ModelShape& shape, TableLayout layout)
    : shape_(shape), layout_(layout) {
  int64_t first_row = 0;
  for (int64_t t = 0; t < shape_.table_count; ++t) {
    const auto rows = static_cast<uint64_t>(shape_.TableRows(t));
    tables_.push_back(
        {.key = Mix(shape_.seed ^ Mix(static_cast<uint64_t>(t) + 1000)),
         .rows = rows,
         .first_row = layout_ == TableLayout::kMerged ? first_row : 0,
         .zipf_scale =
             std::pow(static_cast<double>(rows) + 1.0, 1.0 - kZipfExponent) -
             1.0});
    first_row += shape_.TableRows(t);
  }
  SampleRng rng(Mix(shape_.seed ^ 0x7ea11eadU));
  const float norm =
      1.0F / std::sqrt(static_cast<float>(shape_.dense_features));
  for (int64_t f = 0; f < shape_.dense_features; ++f) {
    dense_weights_.push_back(rng.Normal() * norm);
  }
}

void ClickLog::Read(ClickStream stream, int64_t first, int64_t count,
                    const ClickColumns& out) const {
  if (auto* const* wide = std::get_if<int64_t*>(&out.rows)) {
    ReadRows(stream, first, count, out, *wide);
  } else {
    ReadRows(stream, first, count, out, std::get<int32_t*>(out.rows));
  }
}

template <typename Index>
void ClickLog::ReadRows(ClickStream stream, int64_t first, int64_t count,
                        const ClickColumns& out, Index* rows) const {
  const int64_t lookups = shape_.lookups_per_table;
  const bool merged = layout_ == TableLayout::kMerged;
  const int64_t sample_stride = merged ? shape_.table_count * lookups : lookups;
  const int64_t table_stride = merged ? lookups : count * lookups;
  const float bag_norm = 1.0F / std::sqrt(static_cast<float>(lookups));
  const float table_norm =
      1.0F / std::sqrt(static_cast<float>(shape_.table_count));
  const uint64_t stream_key =
      Mix(shape_.seed ^ Mix(static_cast<uint64_t>(stream)));

  for (int64_t i = 0; i < count; ++i) {
    SampleRng rng(Mix(stream_key ^ static_cast<uint64_t>(first + i)));
    float* dense = out.dense + i * shape_.dense_features;
    float dense_score = 0.0F;
    for (size_t f = 0; f < dense_weights_.size(); ++f) {
      dense[f] = rng.Normal();
      dense_score += dense[f] * dense_weights_[f];
    }
    float alone = 0.0F;
    float together = 0.0F;
    float previous = dense[0];
    Index* sample_rows = rows + i * sample_stride;
    for (const Table& table : tables_) {
      float paired = 0.0F;
      for (int64_t l = 0; l < lookups; ++l) {
        const uint64_t rank =
            ZipfRank(rng.Uniform(), table.zipf_scale, table.rows);
        // Frequent categories lie anywhere in the table, and some share a
        // row, as with the hashing of real feature stores.
        const uint64_t row = Scale(Mix(table.key ^ rank), table.rows);
        const Taste taste = TasteOf(table.key, row);
        alone += taste.alone * bag_norm;
        paired += taste.paired * bag_norm;
        sample_rows[l] =
            static_cast<Index>(table.first_row + static_cast<int64_t>(row));
      }
      together += paired * previous;
      previous = paired;
      sample_rows += table_stride;
    }
    const float score = -1.0F + dense_score + 1.5F * alone * table_norm +
                        1.0F * together * table_norm;
    const double click = 1.0 / (1.0 + std::exp(-static_cast<double>(score)));
    out.labels[i] = rng.Uniform() < click ? 1.0F : 0.0F;
  }
}

}  // namespace cubicml::dlrm
