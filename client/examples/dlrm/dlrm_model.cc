// SPDX-License-Identifier: Apache-2.0
#include "client/examples/dlrm/dlrm_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "client/examples/dlrm/interaction.h"
#include "client/examples/dlrm/matrix_product.h"

namespace cubicml::dlrm {
namespace {

constexpr int64_t kBottomHidden = 64;
constexpr int64_t kTopHidden[] = {128, 64};

// Lookups go to random rows, so a table larger than what the address cache
// covers with pages of 4 KiB pays a page walk for most of them.
void AdviseHugePages(const at::Tensor& table) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // NOLINTNEXTLINE(*-reinterpret-cast): page arithmetic on an address.
  const auto begin = reinterpret_cast<uintptr_t>(table.data_ptr());
  const uintptr_t first_page = (begin + page - 1) / page * page;
  const uintptr_t end = begin + table.nbytes();
  if (end < first_page + page) return;
  // A kernel without huge pages refuses; the table works either way.
  // NOLINTNEXTLINE(*-reinterpret-cast, performance-no-int-to-ptr)
  (void)madvise(reinterpret_cast<void*>(first_page),
                (end - first_page) / page * page, MADV_HUGEPAGE);
}

// Fills with uniform numbers of a generator of its own, not of LibTorch's
// global one: then a tensor starts the same however the others are laid out.
void FillUniform(const at::Tensor& tensor, double bound, uint64_t seed) {
  tensor.uniform_(-bound, bound,
                  at::make_generator<at::CPUGeneratorImpl>(seed));
}

}  // namespace

DlrmModel::DlrmModel(const DlrmOptions& options) : options_(options) {
  const ModelShape& shape = options_.shape;
  AddTables();
  bottom_ = {AddLayer(shape.dense_features, kBottomHidden),
             AddLayer(kBottomHidden, shape.embedding_dim)};
  const int64_t pairs = (shape.table_count + 1) * shape.table_count / 2;
  int64_t inputs = shape.embedding_dim + pairs;
  for (const int64_t hidden : kTopHidden) {
    top_.push_back(AddLayer(inputs, hidden));
    inputs = hidden;
  }
  top_.push_back(AddLayer(inputs, 1));
}

void DlrmModel::AddTables() {
  const ModelShape& shape = options_.shape;
  const bool merged = options_.table_layout == TableLayout::kMerged;
  // A bag sums several rows; this keeps its length near that of the bottom
  // network's vector at the start.
  const double bound =
      1.0 / std::sqrt(static_cast<double>(shape.embedding_dim));
  if (merged) {
    tables_.push_back(
        at::empty({shape.TotalRows(), shape.embedding_dim}, at::kFloat));
  }
  int64_t first_row = 0;
  for (int64_t t = 0; t < shape.table_count; ++t) {
    const int64_t rows = shape.TableRows(t);
    if (!merged) {
      tables_.push_back(at::empty({rows, shape.embedding_dim}, at::kFloat));
    }
    // Before the first write, because that is what maps the pages.
    if (options_.huge_pages && (!merged || t == 0)) {
      AdviseHugePages(tables_.back());
    }
    FillUniform(
        merged ? tables_.back().narrow(0, first_row, rows) : tables_.back(),
        bound, shape.seed * 1000 + static_cast<uint64_t>(t));
    first_row += rows;
  }
  for (const at::Tensor& table : tables_) {
    table.set_requires_grad(true);
    parameters_.push_back(table);
  }
}

DlrmModel::Layer DlrmModel::AddLayer(int64_t inputs, int64_t outputs) {
  Layer layer{at::empty({outputs, inputs}, at::kFloat),
              at::zeros({outputs}, at::kFloat)};
  const uint64_t number = parameters_.size() - tables_.size();
  const double bound = std::sqrt(3.0 / static_cast<double>(inputs));
  FillUniform(layer.weight, bound, options_.shape.seed * 1000 + 500 + number);
  layer.weight.set_requires_grad(true);
  layer.bias.set_requires_grad(true);
  parameters_.push_back(layer.weight);
  parameters_.push_back(layer.bias);
  return layer;
}

at::Tensor DlrmModel::SumBags(const at::Tensor& table, const at::Tensor& rows,
                              EmbeddingGradient gradient) const {
  const bool sparse = gradient == EmbeddingGradient::kSparse;
  if (options_.embedding_lookup == EmbeddingLookup::kGather) {
    return at::embedding(table, rows, /*padding_idx=*/-1,
                         /*scale_grad_by_freq=*/false, sparse)
        .sum(1);
  }
  constexpr int64_t kModeSum = 0;
  const at::Tensor offsets =
      at::arange(0, rows.numel(), rows.size(1), rows.scalar_type());
  return std::get<0>(at::embedding_bag(table, rows.flatten(), offsets,
                                       /*scale_grad_by_freq=*/false, kModeSum,
                                       sparse));
}

at::Tensor DlrmModel::LookUp(const Batch& batch,
                             const at::Tensor& bottom) const {
  const ModelShape& shape = options_.shape;
  if (options_.table_layout == TableLayout::kMerged) {
    const at::Tensor bags = SumBags(tables_.front(), batch.rows.flatten(0, 1),
                                    options_.embedding_gradient.front());
    return at::cat({bottom.unsqueeze(1),
                    bags.view({-1, shape.table_count, shape.embedding_dim})},
                   1);
  }
  std::vector<at::Tensor> vectors = {bottom};
  for (size_t t = 0; t < tables_.size(); ++t) {
    vectors.push_back(SumBags(tables_[t],
                              batch.rows.select(0, static_cast<int64_t>(t)),
                              options_.embedding_gradient[t]));
  }
  return at::stack(vectors, 1);
}

at::Tensor DlrmModel::Loss(const Batch& batch) const {
  at::Tensor bottom = batch.dense;
  for (const Layer& layer : bottom_) {
    bottom = at::relu(Linear(bottom, layer.weight, layer.bias));
  }
  const at::Tensor products =
      PairwiseProducts(LookUp(batch, bottom), options_.interaction);
  at::Tensor top = at::cat({bottom, products}, 1);
  for (size_t i = 0; i < top_.size(); ++i) {
    top = Linear(top, top_[i].weight, top_[i].bias);
    if (i + 1 < top_.size()) top = at::relu(top);
  }
  return at::binary_cross_entropy_with_logits(top.squeeze(1), batch.labels, {},
                                              {}, at::Reduction::Mean);
}

}  // namespace cubicml::dlrm
