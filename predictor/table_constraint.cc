// SPDX-License-Identifier: Apache-2.0

#include "predictor/table_constraint.h"

#include <algorithm>
#include <numeric>

namespace cubicml {

TableRows::TableRows(size_t columns, const std::vector<int32_t>& cells)
    : columns_(columns) {
  std::vector<uint32_t> order(columns == 0 ? 0 : cells.size() / columns);
  std::iota(order.begin(), order.end(), 0U);
  const auto row = [&](uint32_t r) { return cells.data() + r * columns; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::lexicographical_compare(row(a), row(a) + columns, row(b),
                                        row(b) + columns);
  });
  order.erase(std::unique(order.begin(), order.end(),
                          [&](uint32_t a, uint32_t b) {
                            return std::equal(row(a), row(a) + columns, row(b));
                          }),
              order.end());
  rows_ = order.size();
  for (size_t c = 0; c < columns; ++c) {
    columns_[c].reserve(rows_);
    for (const uint32_t r : order) columns_[c].push_back(row(r)[c]);
  }
}

TableRows::Matches TableRows::All() const {
  if (rows_ == 0) return {};
  return {{0, static_cast<uint32_t>(rows_)}};
}

// The end of the run of equal codes that starts at `begin`: by growing strides,
// since runs are short as a rule.
uint32_t TableRows::FindEnd(size_t column, uint32_t begin, uint32_t end) const {
  const std::vector<int32_t>& codes = columns_[column];
  const int32_t code = codes[begin];
  uint32_t last = begin;  // has the code
  uint32_t stride = 1;
  while (end - last > stride && codes[last + stride] == code) {
    last += stride;
    stride *= 2;
  }
  const uint32_t limit = end - last > stride ? last + stride : end;
  const auto first_other =
      std::upper_bound(codes.begin() + last, codes.begin() + limit, code);
  return static_cast<uint32_t>(first_other - codes.begin());
}

bool TableRows::Narrow(const Matches& from, size_t column, int32_t code,
                       Matches* to) const {
  to->clear();
  const std::vector<int32_t>& codes = columns_[column];
  for (const Range& range : from) {
    if (code == kAbsent) {
      // Rows agree on the next columns only within runs of this one.
      for (uint32_t begin = range.begin; begin < range.end;) {
        const uint32_t end = FindEnd(column, begin, range.end);
        to->push_back({begin, end});
        begin = end;
      }
      continue;
    }
    const auto first = std::lower_bound(codes.begin() + range.begin,
                                        codes.begin() + range.end, code);
    const auto begin = static_cast<uint32_t>(first - codes.begin());
    if (begin < range.end && codes[begin] == code) {
      to->push_back({begin, FindEnd(column, begin, range.end)});
    }
  }
  return !to->empty();
}

void TableRows::ListCodes(const Matches& from, size_t column,
                          std::vector<int32_t>* codes) const {
  codes->clear();
  for (const Range& range : from) {
    for (uint32_t row = range.begin; row < range.end;
         row = FindEnd(column, row, range.end)) {
      if (columns_[column][row] != kAbsent) {
        codes->push_back(columns_[column][row]);
      }
    }
  }
  if (from.size() > 1) {
    std::sort(codes->begin(), codes->end());
    codes->erase(std::unique(codes->begin(), codes->end()), codes->end());
  }
}

int32_t TableRows::DrawCode(const Matches& from, size_t column,
                            Rng* rng) const {
  uint64_t total = 0;
  for (const Range& range : from) total += range.end - range.begin;
  uint64_t draw = rng->Below(total);
  for (const Range& range : from) {
    const uint64_t size = range.end - range.begin;
    if (draw < size) return columns_[column][range.begin + draw];
    draw -= size;
  }
  return kUnknown;  // not reached: `draw` is below the total
}

}  // namespace cubicml
