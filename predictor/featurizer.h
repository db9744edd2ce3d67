// SPDX-License-Identifier: Apache-2.0
//
// A configuration and its context as numbers for a model.

#ifndef CUBICML_PREDICTOR_FEATURIZER_H_
#define CUBICML_PREDICTOR_FEATURIZER_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "predictor/dataset.h"
#include "predictor/search_space.h"

namespace cubicml {

// Immutable and thread-safe. Features are a function of the space and of the
// context strings that were seen; they are finite and roughly in [-1, 1] or
// {0, 1}: position of a knob on its scale, one-hot categories, activity,
// presence and log of context numbers, products and ratios of counts that
// engineers think in.
class Featurizer {
 public:
  // Changes whenever the meaning of a column changes: a checkpoint of another
  // version is not used.
  static constexpr int kVersion = 1;

  explicit Featurizer(std::shared_ptr<const SearchSpace> space);
  ~Featurizer();
  Featurizer(Featurizer&&) noexcept;

  size_t columns() const;
  const std::vector<std::string>& column_names() const;

  // REQUIRES: points of the space, and a context that it parsed.
  FeatureMatrix Featurize(std::span<const Point> points,
                          const Context& context) const;
  // Appends one row.
  void Append(const Point& point, const Context& context,
              FeatureMatrix* features) const;

 private:
  struct Columns;
  std::unique_ptr<const Columns> columns_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_FEATURIZER_H_
