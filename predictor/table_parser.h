// SPDX-License-Identifier: Apache-2.0
//
// From the proto of a table constraint to rows of codes.

#ifndef CUBICML_PREDICTOR_TABLE_PARSER_H_
#define CUBICML_PREDICTOR_TABLE_PARSER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "cubicml/v1/study.pb.h"
#include "predictor/space_model.h"

namespace cubicml {

// Over the parameters and context fields of `model`. Adds its cells to those of
// the study, which are limited. INVALID_ARGUMENT at a field below `path`.
absl::StatusOr<TableModel> ParseTable(const v1::TableConstraint& table,
                                      const SpaceModel& model,
                                      const std::string& path,
                                      size_t* cells_of_study);

// "table of tp, pp".
std::string DescribeTable(const v1::TableConstraint& table);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TABLE_PARSER_H_
