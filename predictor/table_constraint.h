// SPDX-License-Identifier: Apache-2.0
//
// A table constraint, arranged so that a walk extends a configuration along
// rows that exist instead of trying values and looking them up.

#ifndef CUBICML_PREDICTOR_TABLE_CONSTRAINT_H_
#define CUBICML_PREDICTOR_TABLE_CONSTRAINT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace cubicml {

// Rows of codes, sorted and distinct. A code stands for a value of its column;
// codes of a column are in the order of its values. Immutable and thread-safe.
//
// A column that has no value in a configuration (a knob that is not active, a
// context field that is missing) matches every cell; kAbsent in a row matches
// only such a column.
class TableRows {
 public:
  static constexpr int32_t kAbsent = -1;
  // For a value that no row has.
  static constexpr int32_t kUnknown = -2;

  // Rows [begin, end), which agree in the columns before the next one.
  struct Range {
    uint32_t begin;
    uint32_t end;
  };
  // The rows that match what is set so far. Many ranges only after a column
  // without a value.
  using Matches = std::vector<Range>;

  // `cells` is row-major. REQUIRES: fewer than 2^32 rows.
  TableRows(size_t columns, const std::vector<int32_t>& cells);

  size_t columns() const { return columns_.size(); }
  size_t rows() const { return rows_; }

  Matches All() const;
  // The matches among `from` whose `column` is `code`, or any when the code is
  // kAbsent. REQUIRES: `from` matched the columns before it. Returns false when
  // there are none.
  bool Narrow(const Matches& from, size_t column, int32_t code,
              Matches* to) const;
  // The codes that Narrow would accept, increasing; without kAbsent.
  void ListCodes(const Matches& from, size_t column,
                 std::vector<int32_t>* codes) const;
  // The code of a random row, each row being as likely; kAbsent possible.
  int32_t DrawCode(const Matches& from, size_t column, Rng* rng) const;

 private:
  uint32_t FindEnd(size_t column, uint32_t begin, uint32_t end) const;

  size_t rows_ = 0;
  std::vector<std::vector<int32_t>> columns_;
};

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_TABLE_CONSTRAINT_H_
