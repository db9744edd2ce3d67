// SPDX-License-Identifier: Apache-2.0
//
// The model: embedding tables, a bottom network over the dense features, the
// pairwise products of all vectors, and a top network that ends in one logit.
#ifndef CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_MODEL_H_
#define CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_MODEL_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/examples/dlrm/batch_loader.h"
#include "client/examples/dlrm/dlrm_options.h"

namespace cubicml::dlrm {

// The initial weights depend on the shape alone. Loss() may be called from
// several threads while nobody changes the parameters.
class DlrmModel {
 public:
  explicit DlrmModel(const DlrmOptions& options);

  // Mean binary cross entropy of the batch.
  at::Tensor Loss(const Batch& batch) const;

  // The tables first, then weight and bias of each layer. They share memory
  // with the model.
  const std::vector<at::Tensor>& Parameters() const { return parameters_; }

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };

  void AddTables();
  Layer AddLayer(int64_t inputs, int64_t outputs);

  // Vectors of the samples' bags, and `bottom` as the first: [samples,
  // tables + 1, dim].
  at::Tensor LookUp(const Batch& batch, const at::Tensor& bottom) const;
  // One table's bags; `rows` has one bag in each of its last dimension.
  at::Tensor SumBags(const at::Tensor& table, const at::Tensor& rows,
                     EmbeddingGradient gradient) const;

  const DlrmOptions options_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> tables_;
  std::vector<Layer> bottom_;
  std::vector<Layer> top_;
};

}  // namespace cubicml::dlrm

#endif  // CUBICML_CLIENT_EXAMPLES_DLRM_DLRM_MODEL_H_
