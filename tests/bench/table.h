// SPDX-License-Identifier: Apache-2.0
//
// Tables of measured configurations, as studies that have already run: what the
// surrogate and the searchers are compared on.

#ifndef CUBICML_TESTS_BENCH_TABLE_H_
#define CUBICML_TESTS_BENCH_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "predictor/dataset.h"
#include "predictor/search_space.h"

namespace cubicml::bench {

// The rows of one context, or of all contexts of a table.
struct Table {
  std::string name;
  bool maximize = true;
  std::shared_ptr<const SearchSpace> space;
  FeatureMatrix features;
  std::vector<Point> points;
  std::vector<Context> contexts;  // of each row
  std::vector<DatasetRow> rows;   // groups number the contexts
};

// Every table of INDEX.json in `folder` whose name contains `filter`.
absl::StatusOr<std::vector<Table>> LoadTables(const std::string& folder,
                                              const std::string& filter);

// The largest contexts of a table, each with at least `min_rows` measurements,
// as tables of their own; at most `limit`.
std::vector<Table> SplitContexts(const Table& table, size_t min_rows,
                                 size_t limit);

}  // namespace cubicml::bench

#endif  // CUBICML_TESTS_BENCH_TABLE_H_
