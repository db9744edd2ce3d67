// SPDX-License-Identifier: Apache-2.0
//
// The filter language of lists: a subset of AIP-160 that is parsed once and
// then either compiled to SQL with bound parameters or evaluated directly.
//
//   state = SUCCEEDED AND (objective > 1000 OR client_id = "job-7")
//
// A comparison with a field that has no value is false, and NOT makes it true.
// AND and OR may not be mixed without parentheses: AIP-160 binds OR tighter,
// every other language does the opposite, and a guess would be wrong for
// someone.

#ifndef CUBICML_STORAGE_FILTER_H_
#define CUBICML_STORAGE_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class EnumDescriptor;
}

namespace cubicml {

inline constexpr size_t kMaxFilterBytes = 4096;
inline constexpr int kMaxFilterDepth = 32;

// A typed value of a field or a literal; monostate: the field has none.
// Booleans are 0 and 1, enums are their names, times are UTC microseconds.
using FilterValue = std::variant<std::monostate, int64_t, double, std::string>;

enum class FilterType { kInteger, kReal, kString, kBoolean, kEnum, kTime };

// A field that filters may name.
struct FilterField {
  // A name that ends with '.' stands for all keys of a map: "labels.".
  absl::string_view name;
  FilterType type = FilterType::kString;
  // The column; of a map the column with the JSON object.
  absl::string_view column;
  // The values of kEnum.
  const google::protobuf::EnumDescriptor* values = nullptr;
};

// A condition in SQL with a '?' for each value, in order.
struct SqlCondition {
  std::string sql;
  std::vector<FilterValue> values;
};

// A parsed filter. A value type.
class Filter {
 public:
  // What a field is worth in one resource; `key` is that of a map, or empty.
  using Lookup = std::function<FilterValue(const FilterField& field,
                                           absl::string_view key)>;

  // Lets everything through.
  Filter() = default;

  // `fields` must outlive the filter. INVALID_ARGUMENT on the field "filter",
  // with the position, for text that is too long, too deep, or not a filter.
  static absl::StatusOr<Filter> Parse(absl::string_view text,
                                      std::span<const FilterField> fields);

  bool Matches(const Lookup& lookup) const;

  // "1" when everything is let through.
  SqlCondition ToSql() const;

  struct Node {
    enum class Kind { kAnd, kOr, kNot, kComparison };
    Kind kind = Kind::kAnd;
    std::vector<Node> children;
    // Of a comparison.
    const FilterField* field = nullptr;
    std::string key;
    std::string op;
    FilterValue value;
  };

 private:
  explicit Filter(Node root) : root_(std::move(root)) {}

  Node root_;  // an empty AND is true
};

}  // namespace cubicml

#endif  // CUBICML_STORAGE_FILTER_H_
